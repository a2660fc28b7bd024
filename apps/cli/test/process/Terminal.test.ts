import { spawnSync } from "node:child_process"
import { readFile } from "node:fs/promises"
import { expect } from "vitest"
import { eventually, waitUntil } from "../../../../test/support/Waiting.ts"
import { it as base } from "./MockApi.ts"
import { type Run, source } from "./Program.ts"

/** `listen` in a real pseudo terminal: its keys, and the terminal after each way out. */

const hasScript = spawnSync("script", ["--version"]).stdout?.toString().includes("util-linux") ?? false

/** Throws when it gets SIGUSR2, as a bug would. */
const crashing = `data:text/javascript,${encodeURIComponent('process.on("SIGUSR2", () => { throw new Error("a crash") })')}`

const it = base.extend(
  "terminal",
  async ({ mockApi, skip, starting, target }): Promise<{ readonly shell: Run; readonly pid: number }> => {
    skip(!hasScript, "script of util-linux is not installed")
    // The settings of the terminal before and after, and the process id of the program in between.
    const inner = `stty -g; sh -c 'echo "pid=$$"; exec "$0" "$@"' '${process.execPath}' '${source}' listen ${target.port} --create; echo "code=$?"; stty -g; echo over`
    const shell = starting(["-qfec", inner, "/dev/null"], {
      program: ["script"],
      isTyping: true,
      env: {
        TIDEGATE_URL: mockApi.origin,
        SHELL: "/bin/sh",
        NODE_OPTIONS: `--import=${crashing}`,
        BROWSER: "echo",
        NO_COLOR: "1"
      }
    })
    const pid = Number((await shell.line((line) => line.startsWith("pid="))).slice("pid=".length))
    await shell.line((line) => line.startsWith("keys: r retries the last event"))
    await shell.line((line) => line.startsWith("ready"))
    return { shell, pid }
  }
)

/** The settings of the terminal, of which there is one line before and one after. */
const settingsIn = (said: string): ReadonlyArray<string> =>
  said.split(/\r?\n/).filter((line) => /^[0-9a-f]+(:[0-9a-f]+){10,}$/.test(line))

it("Keys of listen retry and open the last event, and quit", async ({ mockApi, terminal: { shell } }) => {
  shell.press("r")
  await shell.line((line) => line.startsWith("no event has arrived yet"))
  mockApi.deliver("1", "/paid")
  await shell.line((line) => line.includes("200 POST /paid order.paid "))
  // No line is ended: the program gets each key.
  shell.press("r")
  await shell.line((line) => line.startsWith("evt_1 is delivered again, as evt_2"))
  expect(mockApi.calls.at(-1)).toMatchObject({ method: "POST", path: "/v1/events/evt_1/retry" })
  shell.press("o")
  await shell.line((line) => line.startsWith(`${mockApi.origin}/dashboard/events/evt_1 opens in your browser`))
  shell.press("q")
  const { said } = await shell.ended
  expect(said).toContain("code=0")
  const [before, after] = settingsIn(said)
  expect(after).toBe(before)
  expect(mockApi.calls.at(-1)).toMatchObject({ path: "/v1/connections/web_1/disable" })
})

it.for<[string, (pid: number, shell: Run) => unknown, RegExp]>([
  ["Ctrl-C", (_, shell) => shell.press("\u0003"), /code=0/],
  ["SIGTERM", (pid) => process.kill(pid, "SIGTERM"), /code=0/],
  ["SIGHUP", (pid) => process.kill(pid, "SIGHUP"), /code=0/],
  ["a crash", (pid) => process.kill(pid, "SIGUSR2"), /code=[1-9]/]
])("Terminal is as before when listen ends by %s", async ([, end, code], { terminal: { pid, shell } }) => {
  end(pid, shell)
  const { said } = await shell.ended
  expect(said).toMatch(code)
  const [before, after] = settingsIn(said)
  expect(before).toBeDefined()
  expect(after).toBe(before)
})

it("Listen command ends and disables its connection when its terminal is closed", async ({
  mockApi,
  terminal: { pid, shell }
}) => {
  shell.child.kill("SIGKILL")
  await eventually("the connection is disabled", () =>
    mockApi.calls.find(({ path }) => path === "/v1/connections/web_1/disable")
  )
  // A process whose end nobody has asked for yet is a zombie, Z.
  await waitUntil("the program has ended", async () => {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null)
    return stat === null || / Z /.test(stat)
  })
})
