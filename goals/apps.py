from django.apps import AppConfig


class GoalsConfig(AppConfig):
    name = "goals"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_out

        from agents import tokens
        from goals import push_sign_out

        user_logged_out.connect(push_sign_out.signed_out)
        tokens.all_revoked.connect(push_sign_out.new_password)
