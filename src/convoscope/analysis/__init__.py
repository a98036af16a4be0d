"""Questions over runs that span families."""
