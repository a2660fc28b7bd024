import { spawn } from "node:child_process"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { delimiter, dirname, join, resolve } from "node:path"
import { expect } from "vitest"
import type { Gateway } from "./Gateway.ts"
import { patience } from "./Waiting.ts"

/**
 * Runs the commands of a page in `docs` word for word, as a reader would who has a gateway and the programs that the page names.
 */

/** The code blocks of a page in `docs` in these languages, in order. */
export const blocksOf = async (page: string, languages: ReadonlyArray<string>) => {
  const text = await readFile(resolve(import.meta.dirname, "../../docs", page), "utf8")
  const blocks = text.matchAll(new RegExp(`^\`\`\`(${languages.join("|")})\\n(.*?)^\`\`\``, "gms"))
  return [...blocks].map(([, language, code]) => ({ language: language!, code: code! }))
}

/** The environment of a page's shell: the caller's, with this Node first on the path, and no proxy for this machine. */
export const shellEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
  NO_PROXY: "127.0.0.1,localhost",
  no_proxy: "127.0.0.1,localhost"
})

/**
 * Makes the folder in which a page begins, with the gateway's key. Returns a function that runs commands there and returns their
 * output.
 */
export const shellIn = async (gateway: Gateway, folder: string, variables: Readonly<Record<string, string>>) => {
  await mkdir(join(folder, ".tidegate"), { recursive: true })
  await writeFile(join(folder, ".tidegate/api-key"), `${gateway.key}\n`)
  const env = { ...shellEnvironment(), ...variables }
  return async (commands: string): Promise<string> => {
    // A page may wait for something that never happens. Then the shell is ended, and the missing exit code fails the test.
    const shell = spawn("sh", ["-eu"], { cwd: folder, env, timeout: 2 * patience })
    shell.stdin.end(commands.replaceAll("http://localhost:8080", gateway.origin))
    const [out, error] = await Promise.all([shell.stdout.toArray(), shell.stderr.toArray()])
    const code = shell.exitCode ?? (await new Promise<number | null>((end) => shell.once("close", end)))
    expect(code, Buffer.concat(error).toString()).toBe(0)
    return Buffer.concat(out).toString()
  }
}
