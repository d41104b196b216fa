"""Notices and devices over the API (mission H10)."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from goals import push
from goals.models import PushDevice
from tests.factories import NoticeFactory, ReceiptFactory, ThreadFactory
from tests.push_service import BrowserOfSomebody

pytestmark = pytest.mark.django_db(transaction=True)


def test_notices_with_their_receipts_are_listed_and_seen(api: Client, user: User) -> None:
    told = ReceiptFactory(notice__thread=ThreadFactory(user=user), whom=user.email).notice
    NoticeFactory()  # somebody else's
    [listed] = api.get("/api/v1/notices").json()["results"]
    assert listed["id"] == str(told.pk)
    assert listed["title"].startswith("Finished: Goal")
    assert listed["receipts"][0]["channel"] == "mail"
    assert listed["receipts"][0]["whom"] == user.email
    assert listed["seen_at"] is None
    seen = api.post(f"/api/v1/notices/{told.pk}/seen", {}, content_type="application/json").json()
    assert seen["seen_at"]
    assert (
        api.post(f"/api/v1/notices/{told.pk}/seen", {}, content_type="application/json").json()["seen_at"]
        == seen["seen_at"]
    )


def test_a_device_registers_itself_and_is_removed(api: Client, user: User) -> None:
    key = api.get("/api/v1/push-key").json()["key"]
    assert key == push.public_key()
    subscription = json.loads(BrowserOfSomebody("https://push.example/phone", key).subscription)
    body = subscription | {"name": "My phone"}
    made = api.post("/api/v1/push-devices", body, content_type="application/json")
    assert made.status_code == 201
    again = api.post("/api/v1/push-devices", body, content_type="application/json")
    assert again.json()["id"] == made.json()["id"]
    [listed] = api.get("/api/v1/push-devices").json()["results"]
    assert listed == again.json()
    assert listed["name"] == "My phone"
    refused = api.post(
        "/api/v1/push-devices", body | {"endpoint": "http://push.example/"}, content_type="application/json"
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "not_a_subscription")
    assert api.delete(f"/api/v1/push-devices/{listed['id']}").status_code == 204
    assert not PushDevice.objects.exists()


def test_a_device_that_renews_its_subscription_is_told_once(api: Client) -> None:
    made = []
    for address in ("https://push.example/before", "https://push.example/now"):
        body = json.loads(BrowserOfSomebody(address, "").subscription)
        made.append(api.post("/api/v1/push-devices", body, content_type="application/json").json()["id"])
    assert made == [str(PushDevice.objects.get().pk)] * 2


def test_it_ends_with_the_token_of_the_device(api: Client) -> None:
    subscription = json.loads(BrowserOfSomebody("https://push.example/phone", "").subscription)
    api.post("/api/v1/push-devices", subscription, content_type="application/json")
    assert PushDevice.objects.exists()
    api.post("/api/v1/auth/logout", {}, content_type="application/json")
    assert not PushDevice.objects.exists()
