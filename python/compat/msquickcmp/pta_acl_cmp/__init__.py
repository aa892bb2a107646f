"""Comparison of torch (pta) with an acceleration library (acl) while both run."""
