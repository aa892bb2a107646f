"""The name under which the older tools kept what they share."""
