// Becomes pinch: pi's client can start scripts of Node only.
process.execve(process.env.PINCH, [process.env.PINCH, ...process.argv.slice(2)], process.env);
