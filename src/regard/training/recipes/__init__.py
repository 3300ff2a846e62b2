"""The door of a training: names, files, data and settings become one recipe."""
