import { codeMessage, codeStatus } from '../src/error-codes.ts'
import { requestRules } from '../src/errors.ts'
import { type BuiltinReason, catalogue } from '../src/reasons.ts'

/** docs/errors.md: the catalogue of reasons. */
export function errorsPage(): string {
  const entries = Object.entries(catalogue) as [BuiltinReason, (typeof catalogue)[BuiltinReason]][]
  const codes = [...new Set(entries.map(([, { code }]) => code))].sort((a, b) => b - a)
  return [
    introduction,
    '| Reason | Code | HTTP | Meaning |',
    '|---|---|---|---|',
    ...entries.map(
      ([reason, { code, status = codeStatus(code), doc }]) =>
        `| \`${reason}\` | ${code} | ${status} | ${doc.replaceAll('|', '\\|')} |`,
    ),
    '',
    '## Details of `invalid_request`',
    '',
    'Where several rules are broken, one of them is named.',
    '',
    '| Rule | `detail` |',
    '|---|---|',
    ...Object.entries(requestRules).map(([detail, rule]) => `| ${rule} | \`${detail}\` |`),
    '',
    '## Codes',
    '',
    'The text is fixed per code and for people; programs switch on the reason.',
    '',
    '| Code | HTTP | `message` |',
    '|---|---|---|',
    ...codes.map((code) => `| ${code} | ${codeStatus(code)} | ${codeMessage(code)} |`),
    '',
  ].join('\n')
}

const introduction = `<!-- Generated from src/reasons.ts by scripts/docs.ts; edit the catalogue, not this page. -->
# Errors

A refused JSON-RPC call answers with the HTTP status below and
\`{"jsonrpc": "2.0", "id": 1, "error": {"code": …, "message": "…", "data": {"reason": "…"}}}\`; a refused REST
request with \`{"error": "<reason>", …}\`, and so does, at every path, what is refused before the call is read, such as
\`forbidden_origin\`, \`unsupported_media_type\` and \`payload_too_large\`. What the meaning names in code font (\`issues\`, \`retry_after\`,
\`current_version\`) stands beside the reason. The text of an unexpected failure is never sent: look up the
\`X-Request-Id\` of the answer in the log.
`
