"""The templates of a rules file: Go's text/template, as far as such files use it."""
