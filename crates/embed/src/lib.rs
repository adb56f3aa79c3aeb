//! An agent inside a program: the job gets done whatever the providers do.

pub mod replies;

pub mod delivery;

pub mod run;
