/** What the document says of its server; `src/http/site.ts` fills it in. */
export type Server = {
  version: string
  paths: { rpc: string; account: string; ws: string; audit_stream: string }
  home: string
  password_min: number
  /** What a signup by invite needs: the names alone, or the link; `verified_email`: the one that was mailed. */
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
/** With Vite's own server nobody has filled it in. */
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
