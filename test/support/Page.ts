import { spawn } from "node:child_process"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { delimiter, dirname, join, resolve } from "node:path"
import { expect } from "vitest"
import type { Gateway } from "./Gateway.ts"
import { patience } from "./Waiting.ts"

/** Pages of `docs` whose commands a test runs word for word, as somebody would who has a gateway and what the page names. */

/** The blocks of these languages in a page under `docs`, in order. */
export const blocksOf = async (page: string, languages: ReadonlyArray<string>) => {
  const text = await readFile(resolve(import.meta.dirname, "../../docs", page), "utf8")
  const blocks = text.matchAll(new RegExp(`^\`\`\`(${languages.join("|")})\\n(.*?)^\`\`\``, "gms"))
  return [...blocks].map(([, language, code]) => ({ language: language!, code: code! }))
}

/** What a shell of a page has of the caller's: this Node, and no proxy on the way to a gateway of this machine. */
export const shellEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
  NO_PROXY: "127.0.0.1,localhost",
  no_proxy: "127.0.0.1,localhost"
})

/** Where a page begins: a folder that has the gateway's key. Answers how commands are run there, which answers what they say. */
export const shellIn = async (gateway: Gateway, folder: string, variables: Readonly<Record<string, string>>) => {
  await mkdir(join(folder, ".tidegate"), { recursive: true })
  await writeFile(join(folder, ".tidegate/api-key"), `${gateway.key}\n`)
  const env = { ...shellEnvironment(), ...variables }
  return async (commands: string): Promise<string> => {
    // What the page waits for may never come: then the shell ends, and says so by its signal.
    const shell = spawn("sh", ["-eu"], { cwd: folder, env, timeout: 2 * patience })
    shell.stdin.end(commands.replaceAll("http://localhost:8080", gateway.origin))
    const [out, error] = await Promise.all([shell.stdout.toArray(), shell.stderr.toArray()])
    const code = shell.exitCode ?? (await new Promise<number | null>((end) => shell.once("close", end)))
    expect(code, Buffer.concat(error).toString()).toBe(0)
    return Buffer.concat(out).toString()
  }
}
