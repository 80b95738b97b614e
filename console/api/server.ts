/** The description of the server in the document; `src/http/site.ts` fills it in. */
export type Server = {
  version: string
  paths: { rpc: string; account: string; ws: string; audit_stream: string }
  home: string
  password_min: number
  /** What a signup by invite needs: only the names, or the link; `verified_email`: a link that was mailed. */
  invite_claim: 'match' | 'code' | 'verified_email'
  features: Record<
    | 'console'
    | 'pages'
    | 'ws'
    | 'audit_stream'
    | 'app_settings'
    | 'openrpc'
    | 'bootstrap'
    | 'signup'
    | 'recovery'
    | 'mail'
    | 'username_change'
    | 'username_set'
    | 'actor_rename',
    boolean
  >
}

const sent = document.querySelector<HTMLMetaElement>('meta[name=cellkeep]')?.content ?? ''
const isOn = true
/** Vite's own server does not fill it in. */
const inDevelopment: Server = {
  version: 'dev',
  paths: {
    rpc: '/api/rpc',
    account: '/api/account',
    ws: '/api/ws',
    audit_stream: '/api/account/audit/stream',
  },
  home: '/admin',
  password_min: 12,
  invite_claim: 'match',
  features: {
    console: isOn,
    pages: isOn,
    ws: isOn,
    audit_stream: isOn,
    app_settings: isOn,
    openrpc: isOn,
    bootstrap: isOn,
    signup: isOn,
    recovery: isOn,
    mail: isOn,
    username_change: isOn,
    username_set: isOn,
    actor_rename: isOn,
  },
}

export const server: Server = sent.startsWith('{') ? JSON.parse(sent) : inDevelopment
