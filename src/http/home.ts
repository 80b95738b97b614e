import { createHash } from 'node:crypto'
import type { App } from '../core/app.ts'
import { type EdgeReply, type EdgeRequest, jsonReply } from './exchange.ts'

const style = `
:root { color-scheme: light dark; --line: #8884 }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 12vh auto; padding: 0 1.25rem }
h1 { font-size: 1.5rem; margin-bottom: 0 }
table { border-collapse: collapse; width: 100%; margin: 1.5rem 0 }
td { border-top: 1px solid var(--line); padding: .4rem .75rem .4rem 0; vertical-align: top }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }`

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `/`: what runs here and where to go on, as a page for people and as JSON for programs. */
export async function home(app: App, request: EdgeRequest): Promise<EdgeReply> {
  const { config } = app
  const bootstrap_available = (await app.bootstrap.availability()) === true
  const paths = {
    rpc: config.rpc_path,
    account: config.account_path,
    ...(config.ws && { ws: config.ws_path }),
    ...(config.audit_stream && { audit_stream: config.audit_stream_path }),
    health: '/health',
    ready: '/ready',
  }
  const headers = { vary: 'Accept', 'cache-control': 'no-cache' }
  if (!/\btext\/html\b/.test(request.header('accept') ?? ''))
    return jsonReply(200, JSON.stringify({ service: 'cellkeep', bootstrap_available, paths }), headers)
  return jsonReply(200, page(paths, bootstrap_available), {
    ...headers,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy,
    'referrer-policy': 'same-origin',
  })
}

const meanings: Record<string, string> = {
  rpc: 'Every method, as JSON-RPC 2.0',
  account: 'Sign in, sign up and sign out, with cookies',
  ws: 'Methods and notifications over a WebSocket',
  audit_stream: 'The audit log as it is written, for admins',
  health: 'The process answers',
  ready: 'The database answers too',
}

const page = (paths: Record<string, string>, isNew: boolean): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cellkeep</title>
<style>${style}</style>
<h1>Cellkeep</h1>
<p>Accounts, access and content in one service. It is running.</p>
<p>${
  isNew
    ? 'There is <strong>no account yet</strong>. Make the first one with the command that the server printed when it started, or with <code>cellkeep account create --username ada --keeper</code>.'
    : 'It has accounts. <code>cellkeep login</code> signs you in on a terminal.'
}</p>
<table>${Object.entries(paths)
  .map(([name, path]) => `<tr><td><code>${escaped(path)}</code><td>${meanings[name]}`)
  .join('\n')}</table>
<p>The documentation is in the package, in <code>docs/</code>: begin with <code>README.md</code> and <code>docs/api.md</code>.</p>
</html>
`

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
