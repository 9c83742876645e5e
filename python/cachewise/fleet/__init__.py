"""Profiles for many machines: ``python -m cachewise.fleet``; docs/guide/fleets.md is the guide."""
