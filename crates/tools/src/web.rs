//! Content from outside: which addresses may be fetched, and how what comes from there is shown to a model.

pub mod address;

pub mod external;

pub mod html;

pub mod freshness;
