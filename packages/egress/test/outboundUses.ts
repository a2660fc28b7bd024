import { isBuiltin } from "node:module"
import { parseAst } from "vitest/node"

/** Something in a source that can open a connection, ask a name server, or fetch the means to do so unseen. */
export interface OutboundUse {
  /** A module, or `global`. */
  readonly from: string
  /** The names that are used of it; `*` if they cannot be determined. */
  readonly name: string
  readonly line: number
}

type Names = ReadonlySet<string>
const names = (...lists: ReadonlyArray<string>): Names => new Set(lists.join(" ").split(" "))

/** Built-in modules that reach nothing outside the machine. A new one is not trusted before it stands here. */
const quietBuiltins = names(
  "assert assert/strict async_hooks buffer child_process console constants crypto",
  "diagnostics_channel events fs fs/promises os path path/posix path/win32 perf_hooks",
  "process punycode querystring readline readline/promises sqlite stream stream/consumers",
  "stream/promises stream/web string_decoder timers timers/promises tty url util util/types",
  "v8 vm worker_threads zlib"
)

/** Of modules that open connections, what does not. */
const quietNames: ReadonlyMap<string, Names> = new Map([
  ["net", names("createServer Server isIP isIPv4 isIPv6 BlockList SocketAddress")],
  ["http", names("createServer Server IncomingMessage ServerResponse STATUS_CODES METHODS")],
  ["https", names("createServer Server")],
  ["http2", names("createServer createSecureServer constants")],
  ["tls", names("createServer Server createSecureContext")],
  // `createRequire` would load any of these without an import.
  ["module", names("builtinModules isBuiltin stripTypeScriptTypes")],
  ["@effect/sql-pg", names("PgTypes")],
  [
    "@effect/platform-node",
    names(
      "NodeChildProcessSpawner NodeCrypto NodeFileSystem NodeHttpIncomingMessage NodeHttpPlatform",
      "NodeHttpServer NodeHttpServerRequest NodeMultipart NodeMultipartParser NodePath NodeRuntime",
      "NodeServices NodeSink NodeSocketServer NodeStdio NodeStream NodeTerminal NodeWorker",
      "NodeWorkerRunner"
    )
  ]
])

/** Of Effect, which is quiet as a whole, the modules that open connections by themselves. */
const loudNames: ReadonlyMap<string, Names> = new Map([
  ["effect/http", names("FetchHttpClient")],
  ["effect/socket", names("Socket")]
])

/** The same, as paths in the package. */
export const loudEffectModules: ReadonlyArray<string> = [...loudNames].flatMap(([barrel, modules]) =>
  [...modules].map((module) => `${barrel.replace("effect/", "")}/${module}`)
)

/** Packages that reach nothing outside, whatever is imported from them. Any other is taken to, until it stands here. */
const quietPackages = names("effect re2js yaml @smithy/signature-v4")

const isQuiet = (specifier: string, name: string): boolean => {
  if (specifier.startsWith(".") || specifier.startsWith("@tidegate/")) return true
  const module = specifier.replace(/^node:/, "")
  if (isBuiltin(specifier)) return quietBuiltins.has(module) || quietNames.get(module)?.has(name) === true
  const quiet = quietNames.get(module)
  if (quiet !== undefined) return quiet.has(name)
  const loud = loudNames.get(module)
  if (loud !== undefined) return name !== "*" && !loud.has(name)
  // One module of a package: `@effect/platform-node/NodeHttpClient` is `NodeHttpClient` of `@effect/platform-node`.
  const [parent, child] = splitLast(module)
  if (quietNames.has(parent) || loudNames.has(parent)) return isQuiet(parent, child)
  return quietPackages.has(packageOf(module))
}

const splitLast = (module: string): readonly [string, string] => {
  const at = module.lastIndexOf("/")
  return [module.slice(0, at), module.slice(at + 1)]
}

const packageOf = (module: string): string =>
  module
    .split("/")
    .slice(0, module.startsWith("@") ? 2 : 1)
    .join("/")

const loudGlobals = names("fetch WebSocket EventSource XMLHttpRequest WebTransport require")
const globalObjects = names("globalThis global")
/** Members that hand out modules without an import, on whatever object. */
const loudMembers = names("getBuiltinModule _linkedBinding")

interface Node {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** Types are gone when the program runs. */
const isType = (node: Node): boolean =>
  /^TS(Type(?!Assertion)|Interface|ClassImplements|\w+(Type|Keyword)$)/.test(node.type)

const walk = (node: Node, visit: (node: Node, parent: Node, key: string) => void): void => {
  for (const key in node) {
    const value = node[key]
    for (const child of Array.isArray(value) ? value : [value]) {
      if (!isNode(child) || isType(child)) continue
      visit(child, node, key)
      walk(child, visit)
    }
  }
}

/** The text of a literal; `*` for what is computed. */
const textOf = (node: unknown): string =>
  isNode(node) && node.type === "Literal" && typeof node["value"] === "string" ? node["value"] : "*"

/** The name of an identifier, or the text of a literal. */
const nameOf = (node: unknown): string => {
  if (isNode(node) && typeof node["name"] === "string") return node["name"]
  return textOf(node)
}

const memberName = (member: Node): string =>
  member["computed"] === true ? textOf(member["property"]) : nameOf(member["property"])

/** Whether an identifier stands for a variable, rather than naming a property or what another module exports. */
const isReference = (parent: Node, key: string): boolean => {
  if (key === "property") return parent["computed"] === true
  if (key === "key") return parent["computed"] === true
  return !/^(Import|Export)\w*Specifier$/.test(parent.type) || (key === "local" && parent.type === "ExportSpecifier")
}

const list = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.filter(isNode) : [])

/** Everything in a TypeScript or JavaScript source that reaches outside, as far as one file can tell. */
export const outboundUses = (source: string, fileName = "source.ts"): ReadonlyArray<OutboundUse> => {
  const program = parseAst(source, { lang: fileName.endsWith("x") ? "tsx" : "ts" }) as unknown as Node
  const uses: Array<OutboundUse> = []
  const lineAt = (node: Node) => source.slice(0, node.start).split("\n").length
  const found = (from: string, name: string, node: Node): void => {
    uses.push({ from, name, line: lineAt(node) })
  }
  const imported = (from: string, name: string, node: Node): void => {
    if (!isQuiet(from, name)) found(from, name, node)
  }
  /** Modules bound to a variable as a whole: what counts is which members are used. */
  const modules = new Map<string, string>()

  const declared = (node: Node): void => {
    const from = nameOf(node["source"])
    if (node["importKind"] === "type" || node["exportKind"] === "type") return
    const specifiers = list(node["specifiers"])
    // For its side effects, or everything of it.
    if (specifiers.length === 0) return imported(from, "*", node)
    for (const specifier of specifiers) {
      if (specifier["importKind"] === "type" || specifier["exportKind"] === "type") continue
      const name = nameOf(specifier[specifier.type === "ExportSpecifier" ? "local" : "imported"])
      if (name === "*" || name === "default") modules.set(nameOf(specifier["local"]), from)
      else imported(from, name, specifier)
    }
  }

  walk(program, (node, parent, key) => {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportNamedDeclaration":
      case "ExportAllDeclaration":
        if (isNode(node["source"])) declared(node)
        return
      case "ImportExpression":
        return imported(textOf(node["source"]), "*", node)
      case "TSExternalModuleReference":
        return imported(textOf(node["expression"]), "*", node)
      case "MemberExpression": {
        const name = memberName(node)
        const object = nameOf(node["object"])
        if (loudMembers.has(name) || (object === "process" && name === "binding")) found("global", name, node)
        if (globalObjects.has(object) && (name === "*" || loudGlobals.has(name))) found("global", name, node)
        return
      }
      case "Identifier": {
        if (!isReference(parent, key)) return
        const name = nameOf(node)
        if (loudGlobals.has(name)) return found("global", name, node)
        const ofMember = parent.type === "MemberExpression" && key === "object"
        if (globalObjects.has(name) && !ofMember) return found("global", name, node)
        const from = modules.get(name)
        if (from !== undefined) imported(from, ofMember ? memberName(parent) : "*", node)
      }
    }
  })
  return uses
}
