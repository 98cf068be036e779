"""Which agents there are: configured, found installed, built in, and how to install the rest."""
