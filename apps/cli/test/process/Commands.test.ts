import { chmod, readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect } from "vitest"
import type { Body } from "../../../../test/support/Gateway.ts"
import { freePort } from "../../../../test/support/Ports.ts"
import { it } from "./it.ts"

/** The commands against a gateway: what they do, what they say to people and to programs, and what they end with. */

const lines = (text: string): ReadonlyArray<Body> =>
  text
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

describe("Sign-in", () => {
  it("Login stores a valid key for its owner alone and never prints it", async ({ folder, gateway, tidegate }) => {
    const XDG_CONFIG_HOME = join(folder, "config")
    const nobody = { XDG_CONFIG_HOME, TIDEGATE_API_KEY: "", TIDEGATE_URL: "" }
    const wrong = await tidegate(["login", "--url", gateway.origin], { env: nobody, input: "gwk_wrong_key_wrong\n" })
    expect(wrong.code).toBe(3)
    expect(wrong.complained).not.toContain("gwk_wrong")
    const right = await tidegate(["login", "--url", `${gateway.origin}/`], { env: nobody, input: `${gateway.key}\n` })
    expect(right).toMatchObject({ code: 0 })
    expect(right.said + right.complained).not.toContain(gateway.key)
    const file = join(XDG_CONFIG_HOME, "tidegate/credentials.json")
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ url: gateway.origin, key: gateway.key })

    const { name } = await gateway.source()
    expect(await tidegate(["events", "--source", name], { env: nobody })).toMatchObject({ code: 0, said: "" })
    const keyAlone = { ...nobody, TIDEGATE_API_KEY: gateway.key }
    expect(await tidegate(["events"], { env: keyAlone })).toMatchObject({ code: 0 })
    // The key of one gateway is not shown to another.
    const elsewhere = await tidegate(["events", "--url", "http://127.0.0.1:9"], { env: nobody })
    expect(elsewhere).toMatchObject({
      code: 3,
      complained: expect.stringContaining("no credentials for http://127.0.0.1:9")
    })
    expect((await tidegate(["logout"], { env: nobody })).code).toBe(0)
    expect((await tidegate(["events"], { env: nobody })).code).toBe(3)
  })

  it("CLI refuses a credentials file that other users can read", async ({ folder, gateway, tidegate }) => {
    const XDG_CONFIG_HOME = join(folder, "open")
    const env = { XDG_CONFIG_HOME, TIDEGATE_API_KEY: "", TIDEGATE_URL: "" }
    await tidegate(["login", "--url", gateway.origin], { env, input: gateway.key })
    const file = join(XDG_CONFIG_HOME, "tidegate/credentials.json")
    await chmod(file, 0o644)
    expect(await tidegate(["events"], { env })).toMatchObject({
      code: 1,
      complained: expect.stringContaining("can be read by others")
    })
  })
})

describe("Exit codes and error messages", () => {
  it("CLI failures have exit codes and messages for people and for programs", async ({ tidegate }) => {
    const TIDEGATE_URL = `http://127.0.0.1:${await freePort()}`
    const unreachable = await tidegate(["events", "--json"], { env: { TIDEGATE_URL } })
    expect(unreachable.code).toBe(5)
    expect(JSON.parse(unreachable.complained)).toMatchObject({
      error: "unavailable",
      message: expect.stringContaining("ECONNREFUSED")
    })
    expect((await tidegate(["frobnicate"])).code).toBe(2)
    expect((await tidegate(["events", "--status", "LATE"])).code).toBe(2)
    expect((await tidegate(["events", "--url", "localhost:8080"])).code).toBe(2)
    expect((await tidegate(["retry", "what"])).code).toBe(2)
    expect(await tidegate(["events", "evt_0"])).toMatchObject({ code: 4, said: "" })
    expect(await tidegate(["events", "--source", "nowhere"])).toMatchObject({
      code: 4,
      complained: "tidegate: there is no source nowhere\n"
    })
    expect((await tidegate(["events"], { env: { TIDEGATE_API_KEY: "gwk_of_nobody_at_all" } })).code).toBe(3)
    expect((await tidegate(["--version"])).said).toMatch(/^tidegate v/)
    expect((await tidegate(["--completions", "zsh"])).said).toContain("#compdef tidegate")
  })
})

it.skipIf(process.platform !== "linux")(
  "CLI fails when its output cannot be written, but not when the reader has closed the pipe",
  async ({ tidegate }) => {
    const sources = join(import.meta.dirname, "../../src/main.ts")
    const shell = (line: string) => tidegate([], { program: ["sh", "-c", line, process.execPath, sources] })
    expect(await shell('"$0" "$1" --completions zsh > /dev/full')).toMatchObject({
      code: 1,
      complained: "tidegate: standard output cannot be written: ENOSPC\n"
    })
    expect(await shell('{ "$0" "$1" --completions zsh; echo $? >&2; } | true')).toMatchObject({ complained: "0\n" })
  }
)

describe("Records", () => {
  it("CLI sends, lists, shows and retries records without terminal control characters", async ({
    gateway,
    target,
    tidegate
  }) => {
    const { destination, source } = await gateway.route(target)
    const sent = await tidegate(["send", source.name, "--data", '{"a":1}', "--path", "/orders?x=1", "--json"])
    expect(sent.code).toBe(0)
    const request = JSON.parse(JSON.parse(sent.said).answer).request_id as string
    await gateway.eventually("it is delivered", async () => {
      const { events } = await gateway.api("GET", `/requests/${request}/trace`)
      return events[0]?.status === "SUCCESSFUL" ? true : null
    })
    const listed = await tidegate(["requests", "--source", source.name])
    expect(listed.said.trim().split("\t").slice(0, 4)).toEqual([request, expect.any(String), "accepted", source.name])
    // Several with commas, and names for people.
    const shown = await tidegate(["events", "--source", `${source.name},${(await gateway.source()).name}`])
    expect(shown.said.trim().split("\t")).toEqual(expect.arrayContaining([source.name, destination.name, request]))
    const [event] = lines((await tidegate(["events", "--destination", destination.name, "--json"])).said)
    expect(event).toMatchObject({ request_id: request, status: "SUCCESSFUL" })
    expect(JSON.parse((await tidegate(["events", event.id])).said).id).toBe(event.id)
    expect(JSON.parse((await tidegate(["requests", request])).said).request.id).toBe(request)

    const retried = await tidegate(["retry", event.id])
    expect(retried.said).toMatch(new RegExp(`^${event.id}\tevt_\\w+\n$`))
    const replayed = await tidegate(["retry", request, "evt_0"])
    expect(replayed).toMatchObject({ code: 1, said: expect.stringMatching(/^req_\w+\treq_\w+\n$/) })
    expect(replayed.complained).toContain("evt_0: ")

    const evil = await gateway.api("PUT", "/sources", { name: "shop" })
    for (const wrong of [
      ["--path", "/../src_other"],
      ["--path", `/../${evil.id}x`],
      ["-H", "x-a: caf\u0119"]
    ]) {
      expect((await tidegate(["send", evil.id, "--data", "x", ...wrong])).code).toBe(2)
    }
    const refused = await tidegate(["send", evil.id, "--data", "x", "--method", "GET"])
    expect(refused).toMatchObject({ code: 1, complained: expect.stringContaining("405") })
  })

  it("CLI retries events in bulk only after confirmation", async ({ gateway, target, tidegate }) => {
    target.reply = (response) => void response.writeHead(500).end()
    const { source } = await gateway.route(target)
    for (let n = 0; n < 3; n++) await tidegate(["send", source.id, "--data", String(n)])
    const failed = ["--source", source.id, "--status", "FAILED"]
    await gateway.eventually("all have failed", async () => {
      const { said } = await tidegate(["events", ...failed, "--json"])
      return lines(said).length === 3 ? true : null
    })
    expect(await tidegate(["bulk", "events", ...failed])).toMatchObject({
      code: 2,
      complained: "tidegate: 3 events would be retried: add --yes\n"
    })
    target.reset()
    const bulk = await tidegate(["bulk", "events", ...failed, "--yes", "--json"])
    expect(bulk).toMatchObject({ code: 0, complained: "" })
    const operation = JSON.parse(bulk.said)
    expect(operation).toMatchObject({ status: "COMPLETED", total_count: 3 })
    expect(lines((await tidegate(["bulk", "list", "--json"])).said).map(({ id }) => id)).toContain(operation.id)
    expect((await tidegate(["bulk", "wait", operation.id])).said).toContain("COMPLETED: 3 of 3")
    expect((await tidegate(["bulk", "cancel", operation.id])).code).toBe(1)
    // One that was set aside says why.
    const error = JSON.stringify({ code: "PROCESS_ENDED", message: "the process ended" })
    await gateway.sql("update bulk_operations set status = 'FAILED', error = $2::text::jsonb where id = $1", [
      operation.id,
      error
    ])
    const ended = await tidegate(["bulk", "wait", operation.id])
    expect(ended).toMatchObject({ code: 1, said: expect.stringContaining("PROCESS_ENDED: the process ended") })
    expect((await tidegate(["bulk", "list"])).said).toContain("PROCESS_ENDED")
    // What has been resolved is left out; a plan does nothing, and is taken back.
    expect((await tidegate(["bulk", "events", ...failed, "--yes"])).complained).toContain("nothing was found")
    const plan = await tidegate(["bulk", "events", ...failed, "--resolved", "--plan", "--json"])
    expect(JSON.parse(plan.said)).toMatchObject({ status: "PLANNED", total_count: 3, confirmed: false })
    expect(target.received.length).toBe(3)
    expect(await tidegate(["bulk", "events", "--yes"])).toMatchObject({
      code: 1,
      complained: expect.stringContaining("all must be true")
    })
    const nothing = ["bulk", "requests", "--source", source.id, "--status", "rejected"]
    const runs = await tidegate(["bulk", "runs", "--source", source.id, "--error-code", "TIMEOUT"])
    expect(runs).toMatchObject({ code: 0, complained: "nothing was found: nothing is retried\n" })
    const none = await tidegate(nothing)
    expect(none).toMatchObject({ code: 0, complained: "nothing was found: nothing is replayed\n" })
    expect(lines((await tidegate([...nothing, "--json"])).said)).toMatchObject([{ total_count: 0 }])
  })
})

describe("Delete command", () => {
  it("Delete command plans, deletes only after confirmation, and shows what was deleted", async ({
    gateway,
    target,
    tidegate
  }) => {
    const { source } = await gateway.route(target)
    const who = `${gateway.name("ada")}@example.com`
    await tidegate(["send", source.id, "--data", JSON.stringify({ who })])
    await target.next(1)
    await gateway.eventually("the delivery is recorded", async () => {
      const [row] = await gateway.sql("select 1 from events where source_id = $1 and state = 'SUCCESSFUL'", [source.id])
      return row
    })
    const data = ["delete", "data", "--text", who]
    const plan = await tidegate([...data, "--plan", "--json"])
    expect(JSON.parse(plan.said)).toMatchObject({ stage: "planned", planned: { requests: 1, events: 1, attempts: 1 } })
    expect(await tidegate(data)).toMatchObject({
      code: 2,
      complained: expect.stringContaining("3 rows would be deleted, and cannot be restored: add --yes\n")
    })
    expect(await tidegate(["delete", "data"])).toMatchObject({
      code: 1,
      complained: expect.stringContaining("text must be given")
    })
    // The text is not in the list of processes.
    const begun = await tidegate(["delete", "data", "--text", "-", "--yes", "--no-wait", "--json"], {
      input: `${who}\n`
    })
    const { id } = JSON.parse(begun.said)
    const [waited] = await Promise.all([
      tidegate(["delete", "wait", id]),
      gateway.eventually("the rows are deleted", async () => {
        const [row] = await gateway.sql(
          "update data_deletions set pass_at = now() where id = $1 and pass_at is not null returning 1",
          [id]
        )
        return row
      })
    ])
    expect(waited).toMatchObject({ code: 0, said: expect.stringContaining("requests: 1") })
    expect(lines((await tidegate(["delete", "list", "--json"])).said)[0]).toMatchObject({ id, stage: "done" })
    expect((await tidegate(["delete", "cancel", id])).code).toBe(1)
  })
})

describe("Send command", () => {
  const secret = "It's a secret to everybody"

  it("Send command signs requests like their provider, with any input form", async ({ folder, gateway, tidegate }) => {
    const github = await gateway.api("POST", "/sources", {
      name: gateway.name("github"),
      type: "GITHUB",
      config: { auth: { webhook_secret_key: secret } }
    })
    const file = join(folder, "push.json")
    await writeFile(file, '{"ref":"refs/heads/main"}')
    const env = { TIDEGATE_SENDER_SECRET: secret }
    const sent = await tidegate(["send", github.name, file, "-H", "X-GitHub-Event: push", "--json"], { env })
    expect(sent.code).toBe(0)
    const id = JSON.parse(JSON.parse(sent.said).answer).request_id as string
    expect(await gateway.api("GET", `/requests/${id}`)).toMatchObject({ verified: true, status: "accepted" })

    expect(await tidegate(["send", github.id], { env, input: '{"piped":true}' })).toMatchObject({ code: 0 })
    expect(
      await tidegate(["send", github.id, "--data", "{}"], { env: { TIDEGATE_SENDER_SECRET: "another one" } })
    ).toMatchObject({
      code: 1,
      complained: expect.stringContaining("401")
    })
    const without = await tidegate(["send", github.id, "--data", "{}"])
    expect(without).toMatchObject({ code: 2, complained: expect.stringContaining("webhook_secret_key") })
    expect((await tidegate(["send", github.id, "--data", "{}", "--no-sign"])).code).toBe(1)

    const fixture = await gateway.api("POST", "/request-fixtures", { request_id: id, name: "push" })
    const again = await tidegate(["send", github.id, "--fixture", fixture.id, "--json"], { env })
    const copy = JSON.parse(JSON.parse(again.said).answer).request_id as string
    expect(await gateway.api("GET", `/requests/${copy}`)).toMatchObject({
      verified: true,
      data: { body: { ref: "refs/heads/main" }, headers: { "x-github-event": "push" } }
    })
  })

  it("Send command keeps all digits of numbers, from text and from a fixture", async ({ gateway, tidegate }) => {
    const source = await gateway.source()
    const body = '{"id":12345678901234567891,"rate":0.1000000000000000055}'
    const answered = async (...args: ReadonlyArray<string>): Promise<string> =>
      JSON.parse(JSON.parse((await tidegate(["send", source.id, ...args, "--json"])).said).answer).request_id
    const request_id = await answered("--data", body)
    const fixture = await gateway.api("POST", "/request-fixtures", { request_id, name: "digits" })
    const again = await answered("--fixture", fixture.id)
    const [row] = await gateway.sql("select convert_from(body, 'UTF8') as body from requests where id = $1", [again])
    expect(row.body).toBe(body)
    const { said } = await tidegate(["requests", again])
    expect(said).toContain("12345678901234567891")
    expect(said).toContain("0.1000000000000000055")
  })

  it("Send command refuses a provider whose signature it cannot make", async ({ gateway, tidegate }) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("mailgun"),
      type: "MAILGUN",
      config: { auth: { signing_key: "0123456789abcdef0123456789abcdef" } }
    })
    expect(await tidegate(["send", source.id, "--data", "{}"])).toMatchObject({
      code: 2,
      complained: expect.stringContaining("MAILGUN cannot be signed")
    })
  })
})

it("Tail command reports requests, events and attempts and ends cleanly on Ctrl-C", async ({
  gateway,
  starting,
  target
}) => {
  const { source } = await gateway.route(target)
  const tail = starting(["tail", "--source", source.name, "--json"])
  await tail.line((line) => line.includes('"watching"'))
  const posted = await fetch(`${gateway.origin}/e/${source.id}/orders`, { method: "POST", body: "hello" })
  const { request_id } = (await posted.json()) as Body
  expect(JSON.parse(await tail.line((line) => line.includes('"type":"request"')))).toMatchObject({
    request: { id: request_id }
  })
  const { event } = JSON.parse(await tail.line((line) => line.includes('"type":"event"')))
  expect(event).toMatchObject({ request_id, source_id: source.id })
  const { attempt } = JSON.parse(await tail.line((line) => line.includes('"type":"attempt"')))
  expect(attempt).toMatchObject({ event_id: event.id, status: "SUCCESSFUL" })
  expect((await tail.interrupt()).code).toBe(0)
})

describe("Workflows in files", () => {
  const flow = (source: string, status: string) => `{
    "$schema": "http://localhost:8080/schemas/workflow.json",
    "name": ${JSON.stringify(`${source} flow`)},
    "source_id": ${JSON.stringify(source)}, // by its name
    "steps": [{ "id": "only_paid", "kind": "filter", "config": { "conditions": { "body": { "status": "${status}" } } } },],
  }`

  it("Workflows of a file are pushed by name, tested with a body or a stored request, and their runs are followed", async ({
    folder,
    gateway,
    starting,
    tidegate
  }) => {
    const { name, url } = await gateway.source()
    const [file, module, body] = ["flow.jsonc", "flows.ts", "body.json"].map((file) => join(folder, file)) as [
      string,
      string,
      string
    ]
    await writeFile(file, flow(name, "paid"))
    const planned = await tidegate(["workflows", "push", file, "--dry-run"])
    expect([planned.code, planned.said]).toEqual([6, `+ workflow ${name} flow\n  + step only_paid\n`])
    const pushed = await tidegate(["workflows", "push", file])
    expect(pushed).toMatchObject({ code: 0, said: expect.stringMatching(/wfl_\w+ .* flow: version 1\n$/) })
    expect((await tidegate(["workflows", "push", file, "--dry-run"])).code).toBe(0)
    // A module: its types are removed by Node, and what it exports is written as JSON.
    await writeFile(
      module,
      `const flows: Array<object> = [{ toJSON: () => (${flow(name, "open")}) }]\nexport default flows\n`
    )
    const [changed] = lines((await tidegate(["workflows", "push", module, "--json"])).said)
    expect(changed).toMatchObject({ action: "update", applied: true, version: 2, changes: [{ members: ["config"] }] })

    await writeFile(body, '{"status": "open"}')
    const tried = await tidegate(["workflows", "test", `${name} flow`, "--body", body])
    expect(tried).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^only_paid succeeded .*\nsucceeded completed\n$/)
    })
    const filtered = await tidegate(["workflows", "test", file, "--body", body])
    expect(filtered).toMatchObject({ code: 0, said: expect.stringMatching(/\nsucceeded filtered\n$/) })
    expect((await tidegate(["workflows", "test", "nowhere"])).code).toBe(4)

    const watching = starting(["workflows", "logs", "--workflow", `${name} flow`, "--json"])
    await watching.line((line) => line.includes("watching"))
    const sent = await fetch(url, {
      method: "POST",
      body: '{"status":"open"}',
      headers: { "content-type": "application/json" }
    })
    expect(sent.status).toBe(200)
    const run = JSON.parse(await watching.line((line) => line.includes('"status":"succeeded"')))
    expect(run).toMatchObject({ type: "run", run: { outcome: "completed", error_code: null } })
    expect((await watching.interrupt()).code).toBe(0)
  })
})
