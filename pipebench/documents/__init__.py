"""Values as documents: JSON in and out, and figures and text as people read them."""
