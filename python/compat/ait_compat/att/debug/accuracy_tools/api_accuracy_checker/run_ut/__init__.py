"""The two scripts that run recorded APIs again."""
