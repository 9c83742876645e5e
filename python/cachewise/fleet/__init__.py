"""Profiles for many machines: tune every host of a Dask cluster, merge what they found, install the result.

``python -m cachewise.fleet`` is the command; docs/guide/fleets.md is the guide. The modules:

========  ==========================================================================
host      what runs on a host: stands alone, needs only Dask and the command there
plan      which host is tuned next, by which worker: pure, without Dask
tune      the plan, on a Dask scheduler
records   a host's tuning as a Parquet file: schema, writing, reading
classes   hosts of one CPU model that behave alike, and those that behave like no other
merge     one profile for each class that agrees
report    the page
install   profiles to where the library looks for them
files     files that are whole or not there
========  ==========================================================================

Nothing here needs the extension module.
"""
