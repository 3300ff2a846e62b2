"""Settings of the architectures, without torch, so that recipes are checked in no time."""
