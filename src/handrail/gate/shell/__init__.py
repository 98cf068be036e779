"""Shell lines, taken apart into what each of their commands is; whatever is not plain is said to be so."""
