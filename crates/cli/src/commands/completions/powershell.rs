//! Completions for PowerShell.

use std::fmt::Write as _;

use super::surface::{Surface, Values};

/// Generates the script. If it offers nothing, PowerShell offers files.
pub(super) fn script(surface: &Surface) -> String {
    let mut out = String::from(
        "# Completions of pinch for PowerShell. Load them with: pinch completions powershell | Out-String | Invoke-Expression\n\
         Register-ArgumentCompleter -Native -CommandName pinch -ScriptBlock {\n    \
         param($wordToComplete, $commandAst, $cursorPosition)\n    \
         $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { \"$_\" })\n    \
         $command = 'pinch'\n    $isCommand = $true\n    $commands = @(\n",
    );
    let commands: Vec<String> = surface.commands().map(|command| format!("        '{command}'")).collect();
    out.push_str(&commands.join(",\n"));
    out.push_str(
        "\n    )\n    foreach ($word in ($words | Select-Object -Skip 1)) {\n        if ($commands -contains \"$command $word\") { $command = \"$command $word\" } \
         else { $isCommand = $false; break }\n    }\n    $offered = switch -CaseSensitive (\"$command $($words[-1])\") {\n",
    );
    for entry in &surface.entries {
        let line = entry.line();
        for option in &entry.options {
            let Some((_, Values::Words(all))) = &option.value else { continue };
            for name in &option.names {
                let _written = writeln!(out, "        '{line} {name}' {{ {} }}", list(all));
            }
        }
    }
    out.push_str("    }\n    if (-not $offered) {\n        $offered = switch -CaseSensitive ($command) {\n");
    for entry in &surface.entries {
        let options = entry.options.iter().flat_map(|option| option.names.clone());
        let commands = entry.commands.iter().map(|(name, _)| name.clone());
        let arguments = entry.arguments.iter().flat_map(|argument| match &argument.values {
            Values::Words(all) => all.clone(),
            _ => Vec::new(),
        });
        let first: Vec<String> = commands.chain(arguments).collect();
        let options: Vec<String> = options.collect();
        let _written = writeln!(
            out,
            "            '{}' {{ if ($wordToComplete -like '-*') {{ {} }} elseif ($isCommand) {{ {} }} }}",
            entry.line(),
            list(&options),
            list(&first)
        );
    }
    out.push_str(
        "        }\n    }\n    $offered | Where-Object { $_ -like \"$wordToComplete*\" } | ForEach-Object {\n        \
         [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)\n    }\n}\n",
    );
    out
}

/// Formats words as an array; none contains a quote.
fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    format!("@({})", words.join(", "))
}
