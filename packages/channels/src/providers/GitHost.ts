import { needed, setting, text } from "@tidegate/connectors/Settings"
import { Effect, Schema } from "effect"
import type { Context, Item, ProviderError } from "../Adapter.ts"
import { getPage } from "../adapters/Answers.ts"
import { repoWebhookAdapter } from "../adapters/RepoWebhook.ts"
import { listOf, memberOf, textOf, timeOf } from "../Foreign.ts"
import { itemId, itemOf } from "../Items.ts"
import { hasNext, issuePoller } from "../pollers/IssuePoll.ts"
import { type Listed, listPoller, newestPages } from "../pollers/Listing.ts"
import { withQuery } from "../Query.ts"
import type { SourceProvider } from "../SourceProvider.ts"
import { aText, line, maybeText, shape, theData, tokenField } from "./Inputs.ts"

/*
 * GitHub, Gitea and Forgejo. Their APIs are alike, but not below the same path, so the `base_url` of a self-hosted server's account has
 * the path: https://git.example/api/v1 (Gitea, Forgejo) or https://git.example/api/v3 (GitHub Enterprise Server).
 */

const repository = {
  repository: needed(
    text
      .annotate({ description: "The repository, like owner/name" })
      .check(Schema.isPattern(/^[\w.-]{1,100}\/[\w.-]{1,100}$/, { message: "must be a repository like owner/name" })),
    "a repository like owner/name"
  )
}

const repositoryOf = (inputs: Schema.JsonObject): string => textOf(inputs, "repository") ?? ""

const targets = (inputs: Schema.JsonObject) => [{ key: `repository:${repositoryOf(inputs)}` }]

const repositoryUrl = ({ baseUrl, inputs }: Context): string => {
  const [owner = "", name = ""] = repositoryOf(inputs).split("/")
  return `${baseUrl}/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`
}

const hooksUrl = (context: Context): string => `${repositoryUrl(context)}/hooks`

/** Servers have different largest pages: GitHub 100, Gitea usually 50. */
const readPage = (context: Context, list: string, page: number, what: string) => {
  const url = `${repositoryUrl(context)}/${list}`
  return getPage(context, withQuery(url, { per_page: "100", limit: "100", page: String(page) }), what)
}

const heads = "refs/heads/"

/** The id is of the branch and its newest commit: a push and a list of branches name both. */
const pushItem = (inputs: Schema.JsonObject, branch: string, sha: string, data: unknown, at: number | null): Item => {
  const ref = heads + branch
  return itemOf(itemId("push", ref, sha), { repository: repositoryOf(inputs), ref, branch, sha, data }, at)
}

const isWatched = (inputs: Schema.JsonObject, branch: string): boolean => {
  const wanted = textOf(inputs, "branch")
  return wanted === null || wanted === branch
}

const maxPages = 10

const branches = listPoller("repo_webhook", false, (context) =>
  Effect.gen(function* () {
    const entries: Array<Listed> = []
    for (let number = 1; number <= maxPages; number++) {
      const page = yield* readPage(context, "branches", number, "reading the branches")
      for (const branch of listOf(page.value)) {
        // GitHub calls the hash of a commit `sha`, Gitea `id`.
        const [name, sha] = [textOf(branch, "name"), textOf(branch, "commit", "sha") ?? textOf(branch, "commit", "id")]
        if (name === null || sha === null || !isWatched(context.inputs, name)) continue
        entries.push({
          id: itemId("push", heads + name, sha),
          item: () => pushItem(context.inputs, name, sha, branch, timeOf(textOf(branch, "commit", "timestamp")))
        })
      }
      if (!hasNext(page)) break
    }
    return { entries, state: {} }
  })
)

/** An update has the second of its time: GitHub writes it in UTC, Gitea in the zone of its server. */
const issueId = (issue: unknown): string | null => {
  const [id, at] = [textOf(issue, "id"), timeOf(textOf(issue, "updated_at"))]
  // Both list pull requests among the issues.
  if (id === null || at === null || (memberOf(issue, "pull_request") ?? null) !== null) return null
  return itemId("issue", id, String(Math.floor(at / 1_000)))
}

const issueItem = (inputs: Schema.JsonObject, id: string, issue: unknown, action: string | null): Item => {
  const updated = textOf(issue, "updated_at")
  return itemOf(
    id,
    {
      repository: repositoryOf(inputs),
      id: textOf(issue, "id"),
      number: textOf(issue, "number"),
      title: textOf(issue, "title"),
      state: textOf(issue, "state"),
      url: textOf(issue, "html_url"),
      updated_at: updated,
      action,
      data: issue
    },
    timeOf(updated)
  )
}

/** Null: it is a draft. */
const releaseOf = (inputs: Schema.JsonObject, release: unknown): Listed | null => {
  const [id, published] = [textOf(release, "id"), textOf(release, "published_at")]
  if (id === null || published === null || memberOf(release, "draft") === true) return null
  return {
    id: itemId("release", id),
    item: () =>
      itemOf(
        itemId("release", id),
        {
          repository: repositoryOf(inputs),
          id,
          tag: textOf(release, "tag_name"),
          name: textOf(release, "name"),
          prerelease: memberOf(release, "prerelease") === true,
          url: textOf(release, "html_url"),
          published_at: published,
          data: release
        },
        timeOf(published)
      )
  }
}

/** The list is not sorted, because a draft that is published late stands among older releases. */
const releases = listPoller("repo_webhook", false, (context, _, seen) =>
  Effect.map(
    newestPages(
      seen,
      (cursor): Effect.Effect<{ entries: ReadonlyArray<Listed>; next: string | null }, ProviderError> => {
        const number = Number(cursor ?? "1")
        return Effect.map(readPage(context, "releases", number, "reading the releases"), (page) => ({
          entries: listOf(page.value).flatMap((release) => releaseOf(context.inputs, release) ?? []),
          next: hasNext(page) ? String(number + 1) : null
        }))
      }
    ),
    (entries) => ({ entries, state: {} })
  )
)

const sampleRepository = { repository: "acme/shop" }

export const gitHost: SourceProvider = {
  key: "git_host",
  name: "GitHub and Gitea",
  description: "Pushes, issues and releases of a repository, by webhooks.",
  icon_key: "git-branch",
  manifest_version: "1.1.0",
  account: {
    connections: ["api_key", "oauth2"],
    origin: "https://api.github.com",
    selfHosted: true,
    oauth2: {
      authorizationUrl: "https://github.com/login/oauth/authorize",
      tokenUrl: "https://github.com/login/oauth/access_token",
      revocationUrl: null,
      scopes: ["repo", "admin:repo_hook"],
      parameters: {},
      // GitHub Enterprise Server, Gitea and Forgejo have the same pages beside their API, which is two segments below their root.
      selfHosted: {
        authorizationUrl: "../login/oauth/authorize",
        tokenUrl: "../login/oauth/access_token",
        revocationUrl: null
      }
    },
    fields: [
      tokenField(
        "A personal access token that may read the repository and write its webhooks. The base URL of a self-hosted server ends with its API's path: /api/v1 (Gitea, Forgejo) or /api/v3 (GitHub Enterprise Server)"
      )
    ],
    headers: (token) => ({
      authorization: `Bearer ${token}`,
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28"
    }),
    identity: { path: "/user", id: ["id"], name: ["login"], email: ["email"] }
  },
  triggers: [
    {
      key: "push",
      name: "Push",
      description:
        "A branch has a new newest commit. Tags and deleted branches do not count. A poll finds the last of several pushes.",
      category: "code",
      version: "1.0.0",
      requiredScopes: ["repo"],
      inputs: {
        ...repository,
        branch: setting(line(255).annotate({ description: "Only this branch; left out: all" }), null)
      },
      output: shape({
        repository: aText("The repository"),
        ref: aText("refs/heads/ and the branch"),
        branch: aText("The branch"),
        sha: aText("Its newest commit"),
        data: theData("The payload of the webhook, or the branch of the API")
      }),
      primaryOutput: "data",
      sample: {
        inputs: sampleRepository,
        output: {
          repository: "acme/shop",
          ref: "refs/heads/main",
          branch: "main",
          sha: "6dcb09b5b57875f334f61aebed695e2e4193db5e",
          data: { ref: "refs/heads/main", after: "6dcb09b5b57875f334f61aebed695e2e4193db5e" }
        }
      },
      adapter: repoWebhookAdapter({
        events: ["push"],
        targets,
        hooksUrl,
        item: (event, payload, inputs) => {
          const [ref, sha] = [textOf(payload, "ref"), textOf(payload, "after")]
          if (event !== "push" || ref?.startsWith(heads) !== true || sha === null) return null
          const branch = ref.slice(heads.length)
          // A deleted branch has no commit: its hash is zero.
          if (/^0+$/.test(sha) || !isWatched(inputs, branch)) return null
          return pushItem(inputs, branch, sha, payload, timeOf(textOf(payload, "head_commit", "timestamp")))
        }
      }),
      poller: branches
    },
    {
      key: "issue.changed",
      name: "Issue changed",
      description: "An issue was opened, changed, commented or closed. Pull requests do not count.",
      category: "code",
      version: "1.0.0",
      requiredScopes: ["repo"],
      inputs: repository,
      output: shape({
        repository: aText("The repository"),
        id: aText("The issue's id, in digits"),
        number: maybeText("The issue's number in the repository, in digits"),
        title: maybeText("Its title"),
        state: maybeText("open or closed"),
        url: maybeText("Its page"),
        updated_at: maybeText("When it was changed"),
        action: maybeText("What happened; null: a poll found the change"),
        data: theData("The issue as the API gives it")
      }),
      primaryOutput: "data",
      sample: {
        inputs: sampleRepository,
        output: {
          repository: "acme/shop",
          id: "30001",
          number: "1",
          title: "It does not work",
          state: "open",
          url: "https://github.com/acme/shop/issues/1",
          updated_at: "2026-01-01T00:00:00Z",
          action: "opened",
          data: { id: 30_001, number: 1, title: "It does not work", state: "open" }
        }
      },
      adapter: repoWebhookAdapter({
        // A comment changes an issue, too.
        events: ["issues", "issue_comment"],
        targets,
        hooksUrl,
        item: (event, payload, inputs) => {
          const issue = memberOf(payload, "issue")
          const id = event === "issues" || event === "issue_comment" ? issueId(issue) : null
          const action = textOf(payload, "action")
          return id === null ? null : issueItem(inputs, id, issue, event === "issues" ? action : `comment_${action}`)
        }
      }),
      poller: issuePoller({
        targets,
        url: (context) => `${repositoryUrl(context)}/issues`,
        item: ({ inputs }, issue) => {
          const id = issueId(issue)
          return id === null ? null : { id, item: () => issueItem(inputs, id, issue, null) }
        }
      })
    },
    {
      key: "release.published",
      name: "Release published",
      description: "A release or a pre-release was published.",
      category: "code",
      version: "1.0.0",
      requiredScopes: ["repo"],
      inputs: repository,
      output: shape({
        repository: aText("The repository"),
        id: aText("The release's id, in digits"),
        tag: maybeText("Its tag"),
        name: maybeText("Its name"),
        prerelease: { type: "boolean" },
        url: maybeText("Its page"),
        published_at: aText("When it was published"),
        data: theData("The release as the API gives it")
      }),
      primaryOutput: "data",
      sample: {
        inputs: sampleRepository,
        output: {
          repository: "acme/shop",
          id: "40001",
          tag: "v1.0.0",
          name: "First",
          prerelease: false,
          url: "https://github.com/acme/shop/releases/v1.0.0",
          published_at: "2026-01-01T00:00:00Z",
          data: { id: 40_001, tag_name: "v1.0.0", name: "First", draft: false }
        }
      },
      adapter: repoWebhookAdapter({
        events: ["release"],
        targets,
        hooksUrl,
        item: (event, payload, inputs) =>
          event === "release" && textOf(payload, "action") === "published"
            ? (releaseOf(inputs, memberOf(payload, "release"))?.item() ?? null)
            : null
      }),
      poller: releases
    }
  ]
}
