// An extension for the Node host: `node crates/coding-agent/extension-host/pinch-extension-host.mjs extensions/examples/guard.js`.
//
// It blocks commands that remove everything, and brings a tool along that counts words.

const DANGEROUS = /\brm\s+(-\w+\s+)*-\w*[rf]\w*\s+(\/|~)(\s|$)/;

export default function (pi) {
  let nBlocked = 0;

  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash" || !DANGEROUS.test(event.input.command ?? "")) return;
    const command = event.input.command;
    if (ctx.hasUI && (await ctx.ui.confirm("Run it all the same?", command, { timeout: 60_000 }))) return;
    nBlocked += 1;
    ctx.ui.setStatus("guard", `${nBlocked} blocked`);
    return { block: true, reason: `guard: "${command}" removes too much` };
  });

  pi.registerTool({
    name: "count_words",
    label: "Count words",
    description: "Counts the words of a text.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    async execute(_toolCallId, { text }, _signal, onUpdate) {
      onUpdate({ content: [{ type: "text", text: "counting" }] });
      const count = text.split(/\s+/).filter(Boolean).length;
      return { content: [{ type: "text", text: `${count} words` }], details: { count } };
    },
  });

  pi.registerCommand("guard", {
    description: "Says how many commands were blocked",
    getArgumentCompletions: (prefix) => ["show", "reset"].filter((word) => word.startsWith(prefix)).map((value) => ({ value })),
    async handler(args, ctx) {
      if (args === "reset") nBlocked = 0;
      ctx.ui.notify(`guard: ${nBlocked} blocked`, "info");
      await pi.appendEntry("guard", { nBlocked });
    },
  });
}
