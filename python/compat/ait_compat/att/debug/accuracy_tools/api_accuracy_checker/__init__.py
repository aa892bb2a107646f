"""The pre-check of torch APIs under its old name. See docs/api-check.md."""
