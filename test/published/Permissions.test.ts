import { join, resolve } from "node:path"
import { expect, it } from "vitest"
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../packages/api/src/contract/Api.ts"
import { permissionOf } from "../../packages/api/src/contract/Authorization.ts"
import { grantable, routeKeyOf } from "../../packages/api/src/contract/RouteKeys.ts"
import { type Permission, scopesFor } from "../../packages/model/src/Permission.ts"
import { page, table } from "./Markdown.ts"

/**
 * `docs/permissions.md` is generated from the permission of each operation; `npm test -- test/published -u` writes it.
 * `packages/api/test/Isolation.test.ts` tests with every kind of credential that a gateway admits exactly these callers.
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
    permission.scope === "any"
      ? yes
      : scopes.length === 0
        ? no
        : scopes.map((scope) => `\`${scope}\``).join(" and ") + grant
  ]
}

const groups = Object.values(Api.groups).map(({ endpoints, identifier }) => {
  const rows = Object.values(endpoints as Readonly<Record<string, HttpApiEndpoint.Top>>).map((endpoint) => {
    const { method, path } = endpoint
    return [`\`${method} ${path}\``].concat(columns(permissionOf(endpoint), routeKeyOf(endpoint)))
  })
  return { name: identifier, rows }
})

it("The page docs/permissions.md, which -u writes, matches the permissions of every operation", async () => {
  const text = await page([
    "# Who may call what",
    [
      "All routes, with and without `/v1`. This page is generated from the permissions that the gateway checks.",
      "The credentials are described in [people, teams and keys](people-and-keys.md) and [project keys](project-keys.md)."
    ].join(" "),
    [
      "- _Member_ and _owner_ are users with that role in the team. A _site admin_ is an owner of every team.",
      "- The _team key_ is the `gwk_…` of `/project-secrets`, as long as its permissions have not been narrowed.",
      "- A _project key_ (`gwp_…`) needs the named scopes. To execute, it also needs a grant for exactly that route.",
      "- `/bins/:id/stream` and `/connect` are WebSockets and check permissions themselves. A project key needs `control:read` for the first and `tunnel:connect` for the second; a user has to be a member of the team."
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
