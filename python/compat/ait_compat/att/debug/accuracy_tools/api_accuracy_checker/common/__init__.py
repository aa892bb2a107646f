"""Where older scripts look for the configuration."""
