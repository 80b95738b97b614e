import type { Message, Notice } from '../registry/messages.ts'

/** The name of a message in files of custom texts: its purpose, or its notice. */
export type TextName = Exclude<Message['purpose'], 'notice'> | Notice

const once =
  'The link works once, until {{expires_at}}. If you did not request it, ignore this message: nothing changes.'
const ours = 'This was done at {{at}}. If it was not you, someone else has access to your account: '
const act = `${ours}set a new password, end your other sessions and tell your administrator.`

const notice = (what: string): string => `Hello {{username}},\n\n${what}\n\n${act}`

/** English, as a subject and a text; `{{…}}` is filled in. */
export const builtinTexts: Readonly<Record<TextName, readonly [subject: string, text: string]>> = {
  password_reset: [
    'Set a new password for {{site}}',
    `Hello {{username}},\n\nOpen this link to set a new password for your account at {{site}}:\n\n{{link}}\n\n${once}`,
  ],
  email_verify: [
    'Confirm your e-mail for {{site}}',
    `Hello {{username}},\n\nOpen this link to confirm that this address belongs to your account at {{site}}:\n\n{{link}}\n\n${once}`,
  ],
  email_change: [
    'Confirm your new e-mail for {{site}}',
    `Hello {{username}},\n\nOpen this link to make this address the e-mail of your account at {{site}}:\n\n{{link}}\n\n${once}`,
  ],
  invite: [
    'You are invited to {{site}}',
    `Hello,\n\nYou are invited to {{site}}. Open this link to create your account:\n\n{{link}}\n\nThe link works once, until {{expires_at}}.`,
  ],
  test: [
    'A test message from {{site}}',
    'This is a test message from {{site}}. It arrived, so messages work.',
  ],
  password_changed: ['Your password for {{site}} was changed', notice('Your password was changed.')],
  email_change_requested: [
    'A new e-mail for {{site}} was requested',
    notice('A new e-mail for your account was requested. Nothing changes until that address is confirmed.'),
  ],
  email_changed: [
    'Your e-mail for {{site}} was changed',
    notice('Your account now has another e-mail; this address is no longer used.'),
  ],
  username_changed: [
    'Your username for {{site}} was changed',
    notice('This is now the username of your account.'),
  ],
  second_factor_added: [
    'A second factor was added at {{site}}',
    notice('A second factor was added to your account.'),
  ],
  second_factor_removed: [
    'A second factor was removed at {{site}}',
    notice('A second factor was removed from your account.'),
  ],
  second_factor_attempts: [
    'Wrong codes were tried at {{site}}',
    notice(
      'Someone who knows your password entered wrong codes for your second factor. They were not let in.',
    ),
  ],
  recovery_code_used: [
    'A recovery code was used at {{site}}',
    notice('A recovery code of your account was used.'),
  ],
  recovery_codes_replaced: [
    'Your recovery codes for {{site}} were replaced',
    notice('The recovery codes of your account were replaced; the old ones no longer work.'),
  ],
  passkey_added: ['A passkey was added at {{site}}', notice('A passkey was added to your account.')],
  passkey_removed: ['A passkey was removed at {{site}}', notice('A passkey was removed from your account.')],
  passkey_counter: [
    'A passkey may have been copied',
    notice(
      'A passkey of your account was used in a way that suggests that it was copied. That sign-in was refused.',
    ),
  ],
  link_added: [
    'A sign-in provider was added at {{site}}',
    notice('A sign-in provider was linked to your account and can now be used to sign in to it.'),
  ],
  link_removed: [
    'A sign-in provider was removed at {{site}}',
    notice('A provider can no longer be used to sign in to your account.'),
  ],
}
