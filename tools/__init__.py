"""Programs that build the site and the packages; not shipped."""
