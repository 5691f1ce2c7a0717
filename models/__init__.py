"""The meeting point of core and checker: scenarios, adapters, properties, the case catalogue."""
