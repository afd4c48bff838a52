"""The nightly workflow of a repository, and the versions that it installs."""
