import { describe, expect, it } from "vitest"
import { folders, inWorkspace, type Source, sourceOf, sourcesIn, target } from "./Tree.ts"

/**
 * Who may import whom. A package imports those of lower layers that it names here, and nothing else: a new arrow is a
 * decision, and this is where it is taken.
 */
const layers: Readonly<Record<string, ReadonlyArray<string>>> = {
  "packages/model": [],
  "packages/runtime": [],
  "packages/json": ["runtime", "model"],
  "packages/client": [],
  "packages/telemetry": ["model"],
  "packages/coordination": ["telemetry", "model"],
  "packages/interpolation": ["json", "runtime", "model"],
  "packages/rules": ["interpolation", "json", "runtime", "model"],
  "packages/formatter": ["interpolation", "json", "runtime", "model"],
  "packages/outbound-auth": ["json", "runtime", "model"],
  "packages/verification": ["json", "model"],
  "packages/redaction": ["verification", "outbound-auth", "json", "runtime", "model"],
  "packages/connectors": ["redaction", "outbound-auth", "interpolation", "json", "runtime", "model"],
  "packages/channels": [
    "connectors",
    "outbound-auth",
    "verification",
    "rules",
    "interpolation",
    "json",
    "runtime",
    "model"
  ],
  "packages/egress": ["runtime", "model"],
  "packages/foreign-databases": ["egress", "connectors", "outbound-auth", "json", "model"],
  "packages/sandbox": ["telemetry", "json", "runtime", "model"],
  "packages/embedded-postgres": [],
  "packages/workflows": ["redaction", "formatter", "rules", "interpolation", "json", "runtime", "model"],
  "packages/actions": [
    "workflows",
    "connectors",
    "outbound-auth",
    "formatter",
    "rules",
    "interpolation",
    "json",
    "runtime",
    "model"
  ],
  "packages/resources": [
    "channels",
    "actions",
    "workflows",
    "connectors",
    "redaction",
    "verification",
    "outbound-auth",
    "rules",
    "json",
    "runtime",
    "model"
  ],
  "packages/storage": [
    "channels",
    "resources",
    "actions",
    "workflows",
    "connectors",
    "redaction",
    "verification",
    "outbound-auth",
    "rules",
    "telemetry",
    "json",
    "runtime",
    "model"
  ],
  "packages/entities": [
    "channels",
    "storage",
    "resources",
    "actions",
    "workflows",
    "sandbox",
    "egress",
    "connectors",
    "redaction",
    "verification",
    "outbound-auth",
    "formatter",
    "rules",
    "coordination",
    "telemetry",
    "json",
    "runtime",
    "model"
  ],
  "packages/ingress": [
    "channels",
    "entities",
    "storage",
    "egress",
    "connectors",
    "verification",
    "rules",
    "coordination",
    "telemetry",
    "runtime",
    "model"
  ],
  "packages/api": [
    "channels",
    "entities",
    "storage",
    "resources",
    "actions",
    "egress",
    "connectors",
    "redaction",
    "outbound-auth",
    "formatter",
    "coordination",
    "telemetry",
    "json",
    "runtime",
    "model"
  ],
  "apps/dashboard": ["client"],
  "apps/cli": ["redaction", "verification", "rules", "client", "json", "model"],
  "apps/gateway": [
    "api",
    "ingress",
    "channels",
    "entities",
    "storage",
    "resources",
    "embedded-postgres",
    "sandbox",
    "foreign-databases",
    "egress",
    "connectors",
    "coordination",
    "telemetry",
    "runtime",
    "model"
  ]
}

/** Packages without I/O, clock or randomness of their own: they can be tested by example alone. */
const pure = [
  "packages/actions",
  "packages/channels",
  "packages/model",
  "packages/interpolation",
  "packages/rules",
  "packages/workflows",
  "packages/outbound-auth",
  "packages/redaction",
  "packages/verification",
  "packages/json",
  "packages/runtime",
  "packages/connectors",
  "packages/formatter",
  "packages/resources"
]

/** What of the platform computes and does nothing else. */
const computing = new Set([
  "node:buffer",
  "node:module",
  "node:crypto",
  "node:querystring",
  "node:string_decoder",
  "node:util",
  "node:zlib",
  "effect",
  "effect/net",
  "@smithy/signature-v4",
  "jose/jwt/sign",
  "nodemailer/lib/dkim/sign",
  "nodemailer/lib/mail-composer",
  "nodemailer/lib/mime-node",
  "re2js",
  "decimal.js",
  "libphonenumber-js/max",
  "markdown-it",
  "htmlparser2",
  "pluralize",
  "any-ascii",
  "linkify-it",
  "tlds"
])

/** What reads the clock, draws lots or reaches out of the process without being imported. */
const reaching =
  /\b(?:process\.|fetch\(|set(?:Timeout|Interval|Immediate)\b|Date\.now\b|new Date\(\)|Math\.random\b|performance\.now\b|console\.|random[A-Z]\w*)/

/** Files of pure packages that are let do so, and why. */
const letReach: Readonly<Record<string, string>> = {
  "packages/model/src/Ids.ts": "the random part of an id",
  "packages/json/src/JsonText.ts": "a seed that senders cannot know",
  "packages/runtime/src/EventLoopBudget.ts": "whether a turn of the loop is over, and the next one",
  "packages/runtime/src/ReportPace.ts": "whether requests arrive, and how long to pause",
  "packages/resources/src/Transformation.ts": "an example of code, which names its variables"
}

/** Builds of several apps share it. It is no part of what runs. */
const publisher = "infra/publish.mjs"

/** Imports that the layers do not allow. */
const violations = (folder: string, sources: ReadonlyArray<Source>): ReadonlyArray<string> => {
  const allowed = new Set(layers[folder])
  const own = new Set(sources.map(({ file }) => file))
  return sources.flatMap(({ imports }) =>
    imports.flatMap((one) => {
      const path = target(one)
      const inner = inWorkspace(one.from)
      // A path that leaves the package's sources goes around its layer; its own modules it names by path.
      const legal =
        path === null
          ? inner === null || allowed.has(inner.name)
          : own.has(path) ||
            path.startsWith(`${folder}/src/`) ||
            (path === publisher && one.file.endsWith("/build.mjs"))
      return legal ? [] : [`${one.file} must not import ${one.from}`]
    })
  )
}

const impurities = (sources: ReadonlyArray<Source>): ReadonlyArray<string> =>
  sources.flatMap(({ code, file, imports }) => {
    const reached = reaching.exec(code)
    return [
      ...imports.flatMap((one) =>
        target(one) !== null || inWorkspace(one.from) !== null || computing.has(one.from)
          ? []
          : [`${file} must not import ${one.from}`]
      ),
      ...(reached === null || file in letReach ? [] : [`${file} must not use ${reached[0]}`])
    ]
  })

describe("Package layers", () => {
  it("The list of layers names every package", () => {
    expect(folders).toEqual(Object.keys(layers).toSorted())
  })

  it.each(folders)("Package %s imports only packages of lower layers", (folder) => {
    const sources = sourcesIn(folder)
    expect(sources.flatMap(({ imports }) => imports).length).toBeGreaterThan(0)
    expect(violations(folder, sources)).toEqual([])
  })

  it.each(pure)("Pure package %s has no side effects", (folder) => {
    expect(impurities(sourcesIn(folder))).toEqual([])
  })

  it("The list of permitted side effects has no unused entry", () => {
    const idle = pure
      .flatMap(sourcesIn)
      .filter(({ code, file }) => file in letReach && !reaching.test(code))
      .map(({ file }) => file)
    expect(idle).toEqual([])
  })

  it("The layer rules detect violations", () => {
    const bad = sourceOf(
      "packages/rules/src/Bad.ts",
      [
        'import { Journal } from "@tidegate/storage/Journal"',
        'import type { Routing } from "@tidegate/ingress/Routing"',
        'export * from "@tidegate/api/ApiRoutes"',
        'const later = await import("@tidegate/egress/Egress")',
        'import { x } from "../../storage/src/Journal.ts"',
        'import {\n  compile,\n  type Own\n} from "@tidegate/rules/Filter"',
        'import { readFileSync } from "node:fs"',
        'import { SqlClient } from "effect/sql"',
        "const now = Date.now() // a comment on process.exit",
        'import { ok } from "./Filter.ts"',
        'import { fine } from "@tidegate/model/Ids"'
      ].join("\n")
    )
    const refused = (modules: ReadonlyArray<string>) => modules.map((from) => `${bad.file} must not import ${from}`)
    expect(violations("packages/rules", [bad]).toSorted()).toEqual(
      refused([
        "../../storage/src/Journal.ts",
        "@tidegate/api/ApiRoutes",
        "@tidegate/egress/Egress",
        "@tidegate/ingress/Routing",
        "@tidegate/rules/Filter",
        "@tidegate/storage/Journal"
      ])
    )
    expect(impurities([bad])).toEqual([...refused(["node:fs", "effect/sql"]), `${bad.file} must not use Date.now`])
  })
})
