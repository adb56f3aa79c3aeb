//! An agent with a tool: a Rust function whose argument type is the schema.
//!
//! ```sh
//! cargo run -p pinch-agent-core --features schemars --example tool_function -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use pinch_agent_core::tool_fn;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    /// The name of a city.
    city: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool_fn("weather", "Look up the weather in a city.", |args: Args, _cx| async move {
        // An error becomes text for the model; the run continues.
        let degrees = if args.city == "Rome" { "24" } else { "" }.parse::<i32>()?;
        Ok(format!("{degrees} degrees in {}", args.city))
    });
    let mut agent = args::agent()?.system("You answer in one sentence.").tool(weather).build()?;
    for question in ["How warm is it in Rome?", "And in Atlantis?"] {
        println!("> {question}\n{}", agent.prompt(question).await?.text());
    }
    Ok(())
}
