import { type ApiKeyPlace, bringsApiKey } from "./Bootstrap.ts"
import type { Settings } from "./Settings.ts"

const example = (base: string, auth: string): ReadonlyArray<string> => [
  "",
  "  Create a source, then post to the url it answers:",
  "",
  `    curl -s ${base}/v1/sources -H "Authorization: Bearer ${auth}" \\`,
  `      -H 'content-type: application/json' -d '{"name":"first"}'`
]

const keyOf = (settings: Settings, place: ApiKeyPlace): string => {
  if (!bringsApiKey(settings)) return "that of the edges: a runner has no API"
  if (place === null) return "the one that this database has from another edge; set TIDEGATE_API_KEY to replace it"
  return "path" in place ? place.path : place.setting
}

/** What a user needs once the gateway runs: its URL, how to sign in, and a first example. */
export const welcome = (settings: Settings, embedded: boolean, place: ApiKeyPlace): string => {
  const base = settings.publicUrl
  const auth = place !== null && "path" in place ? `$(cat ${place.path})` : "$TIDEGATE_API_KEY"
  const lines = [
    "",
    `  Tidegate is running (${settings.role}).`,
    "",
    `  Dashboard      ${base}/`,
    `  Control API    ${base}/v1       (try it: ${base}/docs, described in ${base}/openapi.json)`,
    `  Manual         ${base}/docs/guides/`,
    `  Ingress        ${settings.ingressUrl ?? base}/e/{source_id}`,
    `  API key        ${keyOf(settings, place)}`,
    `  Database       ${embedded ? `embedded PostgreSQL in ${settings.home}` : "DATABASE_URL"}`,
    settings.egressByDefault
      ? "  Deliveries     to public addresses, and to this machine (loopback); set TIDEGATE_EGRESS_ALLOW to change this"
      : `  Deliveries     to public addresses${settings.egressAllow.length > 0 ? ` and ${settings.egressAllow.join(", ")}` : ""}`,
    ...(bringsApiKey(settings) ? example(base, auth) : []),
    ""
  ]
  return `${lines.join("\n")}\n`
}
