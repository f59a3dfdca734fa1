// Stands for the system: reads {"input": …} and prints {"output": …}.
import { readFileSync } from "node:fs";

const { input } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ output: input.toUpperCase() }));
