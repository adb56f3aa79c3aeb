//! External content: which addresses may be fetched, and how content is presented to a model.

pub mod address;

pub mod external;

pub mod html;

pub mod freshness;
