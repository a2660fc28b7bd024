import type { Moment, Sample, Samples } from "./Sample.ts"

const user = { login: "octocat", id: 583_231, type: "User", site_admin: false, html_url: "https://github.com/octocat" }
const repository = {
  id: 1_296_269,
  name: "hello-world",
  full_name: "octocat/hello-world",
  private: false,
  owner: user,
  html_url: "https://github.com/octocat/hello-world",
  description: "A sample repository",
  default_branch: "main"
}

/** `name`: the value of the header, which for some events does not say all. */
const event = (called: string, name: string, body: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: called,
  headers: (now) => ({
    "user-agent": "GitHub-Hookshot/044aadd",
    "x-github-delivery": now.uuid(),
    "x-github-event": name,
    "x-github-hook-id": "292430182",
    "x-github-hook-installation-target-id": String(repository.id),
    "x-github-hook-installation-target-type": "repository"
  }),
  body: (now) => ({ ...body(now), repository, sender: user })
})

export const github: Samples = {
  type: "GITHUB",
  documentation: "https://docs.github.com/en/webhooks/webhook-events-and-payloads",
  posts: "json",
  samples: [
    event("ping", "ping", (now) => ({
      zen: "Keep it logically awesome.",
      hook_id: 292_430_182,
      hook: {
        type: "Repository",
        id: 292_430_182,
        name: "web",
        active: true,
        events: ["push", "pull_request"],
        config: { content_type: "json", insecure_ssl: "0", url: "https://hooks.example.com/" },
        created_at: now.iso,
        updated_at: now.iso
      }
    })),
    event("push", "push", (now) => {
      const after = now.hex(40)
      const commit = {
        id: after,
        tree_id: now.hex(40),
        distinct: true,
        message: "Update the readme",
        timestamp: now.iso,
        url: `${repository.html_url}/commit/${after}`,
        author: { name: "The Octocat", email: "octocat@example.com", username: user.login },
        committer: { name: "The Octocat", email: "octocat@example.com", username: user.login },
        added: [],
        removed: [],
        modified: ["README.md"]
      }
      return {
        ref: "refs/heads/main",
        before: now.hex(40),
        after,
        created: false,
        deleted: false,
        forced: false,
        base_ref: null,
        compare: `${repository.html_url}/compare/main`,
        commits: [commit],
        head_commit: commit,
        pusher: { name: user.login, email: "octocat@example.com" }
      }
    }),
    event("pull_request.opened", "pull_request", (now) => ({
      action: "opened",
      number: 2,
      pull_request: {
        id: 279_147_437,
        number: 2,
        state: "open",
        locked: false,
        title: "Update the readme",
        user,
        body: "This is a simple change.",
        html_url: `${repository.html_url}/pull/2`,
        created_at: now.iso,
        updated_at: now.iso,
        merged_at: null,
        draft: false,
        merged: false,
        head: { label: "octocat:changes", ref: "changes", sha: now.hex(40), repo: repository },
        base: { label: "octocat:main", ref: "main", sha: now.hex(40), repo: repository },
        commits: 1,
        additions: 1,
        deletions: 1,
        changed_files: 1
      }
    })),
    event("issues.opened", "issues", (now) => ({
      action: "opened",
      issue: {
        id: 73_464_126,
        number: 1,
        title: "Spelling error in the readme",
        user,
        labels: [],
        state: "open",
        locked: false,
        assignees: [],
        comments: 0,
        html_url: `${repository.html_url}/issues/1`,
        created_at: now.iso,
        updated_at: now.iso,
        closed_at: null,
        author_association: "OWNER",
        body: "It looks like a word is misspelt."
      }
    })),
    event("release.published", "release", (now) => ({
      action: "published",
      release: {
        id: 17_372_790,
        tag_name: "v1.0.0",
        target_commitish: "main",
        name: "v1.0.0",
        draft: false,
        prerelease: false,
        author: user,
        body: "The first release",
        html_url: `${repository.html_url}/releases/tag/v1.0.0`,
        created_at: now.iso,
        published_at: now.iso,
        assets: []
      }
    }))
  ]
}
