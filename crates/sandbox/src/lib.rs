#![doc = include_str!("../README.md")]

pub mod scope;

pub mod config;

pub mod container;

pub mod facts;

pub mod domains;

pub mod confinement;

pub mod contract;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod egress;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod confined;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod landlock;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod bubblewrap;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod containers;

pub mod choose;
