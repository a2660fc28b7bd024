import { join, resolve } from "node:path"
import { expect, it } from "vitest"
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../packages/api/src/contract/Api.ts"
import { permissionOf } from "../../packages/api/src/contract/Authorization.ts"
import { grantable, routeKeyOf } from "../../packages/api/src/contract/RouteKeys.ts"
import { type Permission, scopesFor } from "../../packages/model/src/Permission.ts"
import { page, table } from "./Markdown.ts"

/**
 * `docs/permissions.md` is made of what is said of each operation, and `npm test -- test/published -u` writes it. That a gateway lets in
 * whom it says, and nobody else, `packages/api/test/Isolation.test.ts` tries with every kind of credential.
 */

const yes = "yes"
const no = "—"

const columns = (permission: Permission, route: string): ReadonlyArray<string> => {
  if (permission === "public") return ["anybody", "", "", "", ""]
  const { teamKey, user } = permission
  const scopes = scopesFor(permission)
  const member = user === "member" || user === "self"
  const owner = member || user === "owner"
  const grant = scopes[0] === "control:execute" ? `, grant \`${route}\`` : ""
  return [
    member ? yes : no,
    owner ? yes : no,
    yes,
    teamKey ? yes : no,
    scopes.length === 0 ? no : scopes.map((scope) => `\`${scope}\``).join(" and ") + grant
  ]
}

const groups = Object.values(Api.groups).map(({ endpoints, identifier }) => {
  const rows = Object.values(endpoints as Readonly<Record<string, HttpApiEndpoint.Top>>).map((endpoint) => {
    const { method, path } = endpoint
    return [`\`${method} ${path}\``].concat(columns(permissionOf(endpoint), routeKeyOf(endpoint)))
  })
  return { name: identifier, rows }
})

it("docs/permissions.md, which -u writes, is what is said of every operation", async () => {
  const text = await page([
    "# Who may call what",
    [
      "Every route, with and without `/v1`. This page is made of what the gateway checks.",
      "What the credentials are: [people, teams and keys](people-and-keys.md), [project keys](project-keys.md)."
    ].join(" "),
    [
      "- _Member_ and _owner_ are users who are that to the team; a _site admin_ is an owner of every team.",
      "- The _team key_ is the `gwk_…` of `/project-secrets`, as long as nobody has narrowed it.",
      "- A _project key_ (`gwp_…`) needs the scopes that are named, and, to execute, a grant for that very route.",
      "- `/bins/:id/stream` and `/connect` are WebSockets and ask by themselves: for what `control:read` and `tunnel:connect` are to a project key, and a member of the team to users."
    ].join("\n"),
    ...groups.flatMap(({ name, rows }) => [
      `## ${name}`,
      table(["Route", "Member", "Owner", "Site admin", "Team key", "Project key"], rows)
    ]),
    "## What can be granted",
    grantable.map((route) => `- \`${route}\``).join("\n")
  ])
  await expect(text).toMatchFileSnapshot(join(resolve(import.meta.dirname, "../../docs"), "permissions.md"))
})
