import { isLoopbackHost } from '../ip.ts'
import type { Config, Key } from '../table.ts'
import type { RuleContext } from './context.ts'

/** The rules of the settings about messages; each string is one problem. */
export function brokenMail(config: Config, context: RuleContext): string[] {
  const { label, isGiven, isBroken, serves, deliver } = context
  const { mail, smtp_url, mail_from } = config
  const problems: string[] = []
  const besides = (key: Key): string =>
    `${label(key)} must not be set together with the option deliver, which delivers the messages`
  if (deliver !== undefined && mail !== 'hook') problems.push(besides('mail'))
  if (deliver !== undefined && smtp_url !== null) problems.push(besides('smtp_url'))
  if (deliver === undefined && mail === 'hook')
    problems.push(`${label('mail')} may be hook only with the option deliver`)
  if ((smtp_url === null) !== (mail_from === null) && !isBroken('smtp_url') && !isBroken('mail_from'))
    problems.push(`${label('smtp_url')} and ${label('mail_from')} must both be set, or neither`)
  if (mail === 'smtp' && smtp_url === null && !isBroken('smtp_url'))
    problems.push(`${label('smtp_url')} is required when ${label('mail')} is smtp`)
  if (mail === 'file' && config.env !== 'development' && !isLoopbackHost(config.host))
    problems.push(
      `${label('mail')} may be file only when ${label('env')} is development or ${label('host')} is a loopback address`,
    )
  if (config.invite_claim === 'verified_email' && mail === 'off')
    problems.push(`${label('invite_claim')} may be verified_email only if ${label('mail')} delivers messages`)
  if (!serves || mail === 'off') return problems
  if (config.public_url === null && !isBroken('public_url'))
    problems.push(
      `${label('public_url')} is required to send messages when ${label('host')} is not a loopback address`,
    )
  if (config.database_url !== null && config.secret_keys === null && !isBroken('secret_keys'))
    problems.push(
      `${label('secret_keys')} is required with ${label('database_url')} to send messages: ` +
        'make a key with `cellkeep keys generate` and give the same to every node',
    )
  if (config.console === 'off' && !isGiven('link_url'))
    problems.push(`${label('link_url')} is required to send messages when ${label('console')} is off`)
  return problems
}

/** A startup warning if links lead to this machine although people come through a proxy. */
export function unreachableLinks(
  { mail, trusted_proxies, public_url }: Config,
  { label, isGiven }: Pick<RuleContext, 'label' | 'isGiven'>,
): string[] {
  const areDefault = !isGiven('public_url') && !isGiven('link_url')
  if (mail === 'off' || trusted_proxies.length === 0 || !areDefault) return []
  return [
    `${label('public_url')} is not set: links in messages lead to ${public_url}, which people cannot reach through a proxy`,
  ]
}
