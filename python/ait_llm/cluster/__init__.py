"""Comparing on a Ray cluster: what `ait llm compare --on ray` runs (docs/cluster.md).

Ray places, retries and moves; the native program plans, compares a part and merges. Nothing but this package imports
Ray, and it only when it is asked to run.
"""
