//! A reply as a Rust value: the schema is derived from the type, and the provider is asked to follow it.
//!
//! ```sh
//! cargo run -p pinch-llm --features schemars --example structured_output -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use pinch_llm::request::ResponseFormat;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Animal {
    /// The common name in English.
    name: String,
    /// Number of legs, claws included.
    legs: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let chat = args::Args::read()?.chat().system("You fill in forms about animals.").user("The common crab.");
    let reply = chat.response_format(ResponseFormat::of::<Animal>()).send().await?;
    let animal: Animal = reply.json()?;
    println!("{} has {} legs", animal.name, animal.legs);
    Ok(())
}
