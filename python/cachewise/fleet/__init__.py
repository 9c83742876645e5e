"""Profiles for many machines: tune every host of a Dask cluster, merge what they found, install the result.

``python -m cachewise.fleet`` is the command; docs/guide/fleets.md is the guide. `host` is what runs on a host and
stands alone; `plan` says which host is tuned next, without Dask; `tune` is the plan on a scheduler; `store` has the
files; `merge` has `cachewise tune --from` decide, one profile for each CPU.
"""
