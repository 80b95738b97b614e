import { useEffect, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRun } from '../api/run.ts'
import { entry } from '../copy/entry.ts'
import { explain } from '../copy/errors.ts'
import { askPasskey } from '../lib/webauthn.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'

type Offer = Awaited<ReturnType<typeof client.account.options>>
type Props = {
  /** A passkey can sign in here; without this callback there are only the providers, which may also sign up. */
  onDone?: () => void
  invite_token?: string | undefined
  /** Proves again who is signed in, in one of these ways. */
  again?: readonly string[]
}

/** What the server offers besides a password. If it does not answer, the password remains. */
export function OtherWays({ onDone, invite_token, again }: Props) {
  const [offer, setOffer] = useState<Offer | null>(null)
  useEffect(() => {
    client.account.options().then(setOffer, () => {})
  }, [])
  const byPasskey = useRun(
    async () => {
      const { options } = await client.account.passkey_begin({})
      const response = await askPasskey(options)
      if (!response) return undefined
      return again
        ? await client.account.reauthenticate({ passkey: response })
        : await client.account.passkey_finish({ response })
    },
    {
      done: (proven) => {
        if (proven) onDone?.()
      },
    },
  )
  const byProvider = useRun(async (provider: string) => {
    const intent = again ? 'reauthenticate' : 'sign_in'
    const { url } = await client.account.oidc_start({ provider, intent, invite_token })
    location.assign(url)
  })
  const isFit = (way: string): boolean => !again || again.includes(way)
  const hasPasskeys = onDone && offer?.passkeys && 'PublicKeyCredential' in window && isFit('passkey')
  const providers = offer?.providers.filter(({ id }) => isFit(`oidc:${id}`)) ?? []
  if (!hasPasskeys && providers.length === 0) return null
  const error = byPasskey.error ?? byProvider.error
  return (
    <div class="stack-tight">
      <Fault
        text={error && (error.reason === 'invalid_credentials' ? entry.passkey_unknown : explain(error))}
      />
      {hasPasskeys && (
        <Button
          wide
          isBusy={byPasskey.isBusy}
          wait={byPasskey.wait}
          onClick={() => void byPasskey.send(undefined)}
        >
          {entry.by_passkey}
        </Button>
      )}
      {providers.map(({ id, label }) => (
        <Button
          key={id}
          wide
          isBusy={byProvider.isBusy}
          wait={byProvider.wait}
          onClick={() => {
            byPasskey.reset()
            void byProvider.send(id)
          }}
        >
          {entry.by_provider(label)}
        </Button>
      ))}
    </div>
  )
}
