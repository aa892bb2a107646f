"""The name under which the labels of the on-line comparison used to be found."""
