"""Transports: deliveries out to the roles that handle them. In memory here; a broker has the same shape."""
