import type { Moment, Sample, Samples } from "./Sample.ts"

const user = { id: 4, name: "Ada Lovelace", username: "ada", email: "ada@example.com" }
const project = {
  id: 15,
  name: "Orders",
  description: "A sample project",
  web_url: "https://gitlab.example.com/shop/orders",
  git_http_url: "https://gitlab.example.com/shop/orders.git",
  namespace: "Shop",
  visibility_level: 0,
  path_with_namespace: "shop/orders",
  default_branch: "main"
}

const event = (name: string, hook: string, body: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: name,
  headers: (now) => ({
    "user-agent": "GitLab/17.0.0",
    "x-gitlab-event": hook,
    "x-gitlab-event-uuid": now.uuid(),
    "x-gitlab-instance": "https://gitlab.example.com",
    "x-gitlab-webhook-uuid": now.uuid()
  }),
  body
})

export const gitlab: Samples = {
  type: "GITLAB",
  documentation: "https://docs.gitlab.com/user/project/integrations/webhook_events/",
  posts: "json",
  samples: [
    event("push", "Push Hook", (now) => {
      const after = now.hex(40)
      return {
        object_kind: "push",
        event_name: "push",
        before: now.hex(40),
        after,
        ref: "refs/heads/main",
        checkout_sha: after,
        user_id: user.id,
        user_name: user.name,
        user_username: user.username,
        user_email: user.email,
        project_id: project.id,
        project,
        commits: [
          {
            id: after,
            message: "Update the readme",
            title: "Update the readme",
            timestamp: now.iso,
            url: `${project.web_url}/-/commit/${after}`,
            author: { name: user.name, email: user.email },
            added: [],
            modified: ["README.md"],
            removed: []
          }
        ],
        total_commits_count: 1
      }
    }),
    event("merge_request", "Merge Request Hook", (now) => ({
      object_kind: "merge_request",
      event_type: "merge_request",
      user,
      project,
      object_attributes: {
        id: 99,
        iid: 1,
        target_branch: "main",
        source_branch: "changes",
        source_project_id: project.id,
        target_project_id: project.id,
        author_id: user.id,
        title: "Update the readme",
        description: "",
        created_at: now.iso,
        updated_at: now.iso,
        state: "opened",
        merge_status: "unchecked",
        draft: false,
        url: `${project.web_url}/-/merge_requests/1`,
        action: "open"
      },
      labels: [],
      changes: {}
    })),
    event("pipeline", "Pipeline Hook", (now) => ({
      object_kind: "pipeline",
      object_attributes: {
        id: 31,
        iid: 3,
        ref: "main",
        tag: false,
        sha: now.hex(40),
        source: "push",
        status: "success",
        stages: ["build", "test", "deploy"],
        created_at: now.iso,
        finished_at: now.iso,
        duration: 63
      },
      user,
      project,
      builds: []
    }))
  ]
}
